"""A dataset of images in one folder per class, with torchvision's interface."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .dataset import Dataset
from .optional import require

__all__ = ["ImageFolder"]

_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class ImageFolder(Dataset[tuple[Any, Any]]):
    """A dataset of images in one folder per class. A sample is a tuple of the image and the number of its class.

    The folders of `root` are the classes, which are numbered in the order of their sorted names. The images of a class are
    all files below its folder, in sorted order. The interface is that of `torchvision.datasets.ImageFolder`.

    Arguments:
        root: path of the folder.
        transform: a function of the image. Default: the image stays a `PIL.Image.Image` in mode "RGB".
        target_transform: a function of the number of the class.
        loader: a function that reads the image at a path. Default: Pillow, which must be installed.
        is_valid_file: a function of a path that returns whether the file is an image. Default: the extension is that of
            a format, such as ".jpg" and ".png".
        allow_empty: whether folders without images are classes. Otherwise they raise FileNotFoundError.

    Raises FileNotFoundError if there are no classes or a class has no images. An exception while a sample is read has a
    note with the path of the image.

    Attributes:
        classes: the names of the classes.
        class_to_idx: a dict from the name of a class to its number.
        samples: a list of tuples (path, number of the class); `imgs` is the same list.
        targets: the numbers of the classes of all images.

    Example:
        >>> import os
        >>> from PIL import Image
        >>> for name in ("cat", "dog"):
        ...     os.makedirs(f"images/{name}")
        ...     Image.new("RGB", (4, 4)).save(f"images/{name}/1.png")
        >>> dataset = ImageFolder("images", transform=lambda image: image.size)
        >>> dataset.classes, dataset[1]
        (['cat', 'dog'], ((4, 4), 1))
    """

    root: str
    classes: list[str]
    class_to_idx: dict[str, int]
    samples: list[tuple[str, int]]
    imgs: list[tuple[str, int]]
    targets: list[int]

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        loader: Callable[[str], Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        self.root = os.path.expanduser(os.fspath(root))
        self.transform = transform
        self.target_transform = target_transform
        if loader is None:
            require("PIL.Image", "ImageFolder", "images")
            loader = _load_image
        self.loader: Callable[[str], Any] = loader
        self.extensions: tuple[str, ...] | None = None if is_valid_file else _EXTENSIONS
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = _find_images(self.root, self.class_to_idx, is_valid_file or _is_image, allow_empty)
        self.imgs = self.samples
        self.targets = [target for _, target in self.samples]

    def find_classes(self, directory: str | os.PathLike[str]) -> tuple[list[str], dict[str, int]]:
        """Return the names of the classes and a dict from names to numbers. A subclass may override this."""
        with os.scandir(directory) as entries:
            classes = sorted(entry.name for entry in entries if entry.is_dir())
        if not classes:
            raise FileNotFoundError(f"ImageFolder(root): couldn't find any class folder in {directory}.")
        return classes, {name: i for i, name in enumerate(classes)}

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        try:
            image = self.loader(path)
            if self.transform is not None:
                image = self.transform(image)
        except Exception as error:
            error.add_note(f"in ImageFolder, while reading {path!r}")
            raise
        return image, target if self.target_transform is None else self.target_transform(target)


def _load_image(path: str) -> Any:
    image = require("PIL.Image", "ImageFolder", "images")
    with open(path, "rb") as file, image.open(file) as opened:
        return opened.convert("RGB")


def _is_image(path: str) -> bool:
    return path.lower().endswith(_EXTENSIONS)


def _find_images(
    root: str, class_to_idx: dict[str, int], is_valid: Callable[[str], bool], allow_empty: bool
) -> list[tuple[str, int]]:
    samples: list[tuple[str, int]] = []
    empty = []
    for name in sorted(class_to_idx):
        before = len(samples)
        for folder, _, files in sorted(os.walk(os.path.join(root, name), followlinks=True)):
            paths = (os.path.join(folder, file) for file in sorted(files))
            samples += ((path, class_to_idx[name]) for path in paths if is_valid(path))
        if len(samples) == before:
            empty.append(name)
    if empty and not allow_empty:
        raise FileNotFoundError(
            f"ImageFolder(root): found no valid file for the classes {', '.join(empty)} in {root}\n"
            "Pass allow_empty=True if they should have none."
        )
    return samples
