"""A dataset of files that are stored in one folder per class, with torchvision's interface."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from .dataset import Dataset

__all__ = ["DatasetFolder"]


class DatasetFolder(Dataset[tuple[Any, Any]]):
    """A dataset of files that are stored in one folder per class.

    A sample is a tuple of the result of `loader` and the index of the class. Each folder in `root` is a
    class. The classes are numbered from 0 in the sorted order of their names. The files of a class are all
    files below its folder, in sorted order. The interface is the same as for
    `torchvision.datasets.DatasetFolder`.

    Arguments:
        root: path of the folder.
        loader: a function that takes the path of a file and returns the data of the file.
        extensions: an extension, such as ".npy", or a sequence of extensions. Only files with these extensions are samples;
            upper and lower case are not distinguished.
        transform: a function that is applied to the result of `loader`.
        target_transform: a function that is applied to the index of the class.
        is_valid_file: a function that takes a path and returns whether the file is a sample; used instead of `extensions`.
        allow_empty: whether folders without samples are classes. If False, a folder without samples raises
            FileNotFoundError.

    Raises ValueError unless exactly one of `extensions` and `is_valid_file` is passed, and FileNotFoundError if there are no
    classes or a class has no samples. An exception that is raised while a sample is read has a note with the path of the
    file.

    Attributes:
        classes: the names of the classes.
        class_to_idx: a dict from the name of a class to the index of the class.
        samples: a list of tuples (path, index of the class).
        targets: the class index of each sample.

    Example:
        >>> import os
        >>> import numpy as np
        >>> for number, name in enumerate(["down", "up"]):
        ...     os.makedirs(f"signals/{name}")
        ...     np.save(f"signals/{name}/1.npy", np.full(3, number))
        >>> dataset = DatasetFolder("signals", np.load, ".npy", transform=np.sum)
        >>> dataset.classes, [(int(signal), target) for signal, target in dataset]
        (['down', 'up'], [(0, 0), (3, 1)])
    """

    root: str
    loader: Callable[[str], Any]
    extensions: str | Sequence[str] | None
    classes: list[str]
    class_to_idx: dict[str, int]
    samples: list[tuple[str, int]]
    targets: list[int]

    def __init__(
        self,
        root: str | os.PathLike[str],
        loader: Callable[[str], Any],
        extensions: str | Sequence[str] | None = None,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        self.root = os.path.expanduser(os.fspath(root))
        self.loader = loader
        self.extensions = extensions
        self.transform = transform
        self.target_transform = target_transform
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(self.root, self.class_to_idx, extensions, is_valid_file, allow_empty)
        self.targets = [target for _, target in self.samples]

    def find_classes(self, directory: str | os.PathLike[str]) -> tuple[list[str], dict[str, int]]:
        """Return the class names, and a dict from class names to class indices. A subclass may override this method."""
        with os.scandir(directory) as entries:
            classes = sorted(entry.name for entry in entries if entry.is_dir())
        if not classes:
            raise FileNotFoundError(
                f"{type(self).__name__}(root): couldn't find any class folder in {directory}."
            )
        return classes, {name: i for i, name in enumerate(classes)}

    @classmethod
    def make_dataset(
        cls,
        directory: str | os.PathLike[str],
        class_to_idx: dict[str, int],
        extensions: str | Sequence[str] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        """Return the tuples (path, index of the class) of all samples. A subclass may override this method.

        Raises ValueError unless exactly one of `extensions` and `is_valid_file` is passed, and FileNotFoundError if a class
        has no samples.
        """
        if (not extensions) == (is_valid_file is None):
            raise ValueError(
                f"{cls.__name__}(extensions, is_valid_file): exactly one of them must be passed, "
                f"got extensions={extensions!r} and is_valid_file={is_valid_file!r}"
            )
        if is_valid_file is None:
            endings = (extensions,) if isinstance(extensions, str) else extensions or ()
            lower = tuple(ending.lower() for ending in endings)
            is_valid_file = lambda path: path.lower().endswith(lower)  # noqa: E731
        samples: list[tuple[str, int]] = []
        empty = []
        for name in sorted(class_to_idx):
            before = len(samples)
            for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
                paths = (os.path.join(folder, file) for file in sorted(files))
                samples += ((path, class_to_idx[name]) for path in paths if is_valid_file(path))
            if len(samples) == before:
                empty.append(name)
        if empty and not allow_empty:
            raise FileNotFoundError(
                f"{cls.__name__}(root): found no valid file for the classes {', '.join(empty)} in {directory}\n"
                "Pass allow_empty=True to allow classes without files."
            )
        return samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        try:
            sample = self.loader(path)
            if self.transform is not None:
                sample = self.transform(sample)
        except Exception as error:
            error.add_note(f"in {type(self).__name__}, while reading {path!r}")
            raise
        return sample, target if self.target_transform is None else self.target_transform(target)
