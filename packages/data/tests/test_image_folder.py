"""Images and other files in one folder per class."""

from __future__ import annotations

import os

import numpy as np
import pytest

from rushlight_data import DataLoader, DatasetFolder, ImageFolder


@pytest.fixture
def image():
    return pytest.importorskip("PIL.Image")


@pytest.fixture
def folder(image, tmp_path):
    for number, name in enumerate(["dog/b.png", "dog/a.JPG", "cat/deep/z.png", "cat/y.bmp", "Ant/1.png"]):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (3, 2), (number, 0, 0)).save(path)
    image.new("L", (3, 2), 9).save(tmp_path / "Ant" / "2.png")
    (tmp_path / "dog" / "notes.txt").write_text("no image")
    (tmp_path / "list.png").write_text("not in a class")
    return tmp_path


def to_array(image):
    return np.asarray(image).copy()


def test_classes_and_samples(folder):
    dataset = ImageFolder(folder)
    assert dataset.classes == ["Ant", "cat", "dog"]
    assert dataset.class_to_idx == {"Ant": 0, "cat": 1, "dog": 2}
    names = ["Ant/1.png", "Ant/2.png", "cat/y.bmp", "cat/deep/z.png", "dog/a.JPG", "dog/b.png"]
    assert dataset.samples == [
        (str(folder / name), target) for name, target in zip(names, dataset.targets, strict=True)
    ]
    assert dataset.imgs is dataset.samples
    assert dataset.targets == [0, 0, 1, 1, 2, 2]
    image, target = dataset[1]
    assert (image.mode, image.size, image.getpixel((0, 0)), target) == ("RGB", (3, 2), (9, 9, 9), 0)


def test_transforms_and_batches(folder, transport):
    dataset = ImageFolder(str(folder), to_array, target_transform=lambda target: -target)
    for options in ({}, {"num_workers": 1, "transport": transport}):
        images, targets = next(iter(DataLoader(dataset, 4, sampler=[5, 2, 0, 3], **options)))
        assert images.shape == (4, 2, 3, 3)
        assert images[:, 0, 0, 0].tolist() == [0, 3, 4, 2]
        assert targets.tolist() == [-2, -1, 0, -1]


def test_choice_of_files(folder):
    is_text = lambda path: path.endswith(".txt")  # noqa: E731
    dataset = ImageFolder(folder, loader=os.path.basename, is_valid_file=is_text, allow_empty=True)
    assert len(dataset) == 1
    assert dataset[0] == ("notes.txt", 2)
    assert dataset.classes == ["Ant", "cat", "dog"]
    with pytest.raises(FileNotFoundError, match="no valid file for the classes Ant, cat in"):
        ImageFolder(folder, is_valid_file=is_text)


def test_folders_without_classes(image, tmp_path):
    with pytest.raises(FileNotFoundError, match="couldn't find any class folder"):
        ImageFolder(tmp_path)
    with pytest.raises(FileNotFoundError):
        ImageFolder(tmp_path / "nothing")


@pytest.fixture
def arrays(tmp_path):
    for number, name in enumerate(["up/b.npy", "up/a.NPY", "down/deep/c.npy", "down/d.npz"]):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.save(file, np.full(2, number))
    return tmp_path


def test_files_of_other_formats(arrays, transport):
    dataset = DatasetFolder(str(arrays), np.load, ".npy", lambda array: array + 10, lambda target: -target)
    assert (dataset.root, dataset.loader, dataset.extensions) == (str(arrays), np.load, ".npy")
    assert (dataset.classes, dataset.class_to_idx) == (["down", "up"], {"down": 0, "up": 1})
    names = [os.path.relpath(path, arrays) for path, _ in dataset.samples]
    assert (names, dataset.targets) == (["down/deep/c.npy", "up/a.NPY", "up/b.npy"], [0, 1, 1])
    values, targets = next(iter(DataLoader(dataset, 3, num_workers=1, transport=transport)))
    assert (values.tolist(), targets.tolist()) == ([[12, 12], [11, 11], [10, 10]], [0, -1, -1])
    both = DatasetFolder(arrays, np.load, (".NPZ", ".npy"))
    assert [int(array[0]) for array, _ in both] == [3, 2, 1, 0]


def test_files_that_a_function_chooses(arrays):
    seen = []

    def is_valid(path):
        seen.append(os.path.relpath(path, arrays))
        return path.endswith("c.npy")

    dataset = DatasetFolder(arrays, os.path.basename, is_valid_file=is_valid, allow_empty=True)
    assert list(dataset) == [("c.npy", 0)]
    assert seen == ["down/d.npz", "down/deep/c.npy", "up/a.NPY", "up/b.npy"]
    with pytest.raises(
        FileNotFoundError, match=r"DatasetFolder\(root\): found no valid file for the classes up"
    ):
        DatasetFolder(arrays, os.path.basename, is_valid_file=is_valid)
    for extensions, function in ((None, None), ((), None), ((".npy",), is_valid)):
        with pytest.raises(ValueError, match="exactly one of them must be passed"):
            DatasetFolder(arrays, np.load, extensions, is_valid_file=function)


def test_classes_that_a_subclass_finds(arrays):
    class Signs(DatasetFolder):
        def find_classes(self, directory):
            assert directory == str(arrays)
            return ["up"], {"up": 7}

    assert Signs(arrays, np.load, ".npy").targets == [7, 7]
    (arrays / "up" / "b.npy").write_text("no array")
    with pytest.raises(ValueError) as caught:
        Signs(arrays, np.load, ".npy")[1]
    assert caught.value.__notes__ == [f"in Signs, while reading {str(arrays / 'up' / 'b.npy')!r}"]


@pytest.mark.parametrize("workers", [0, 1])
def test_corrupt_images_are_named(image, folder, workers):
    image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)).save(
        folder / "cat" / "y.bmp"
    )
    os.truncate(folder / "cat" / "y.bmp", 5000)
    (folder / "dog" / "b.png").write_text("no image")
    iterator = iter(DataLoader(ImageFolder(folder, to_array), None, num_workers=workers))
    for index in range(6):
        if index in (2, 5):
            with pytest.raises(OSError) as caught:
                next(iterator)
            notes = "\n".join(caught.value.__notes__)
            assert str(folder / ("cat/y.bmp" if index == 2 else "dog/b.png")) in notes
        else:
            next(iterator)
