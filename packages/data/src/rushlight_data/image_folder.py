"""A dataset of images in one folder per class, with torchvision's interface."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .dataset_folder import DatasetFolder
from .optional import require

__all__ = ["ImageFolder"]

_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class ImageFolder(DatasetFolder):
    """A dataset of images that are stored in one folder per class.

    A sample is a tuple of the image and the index of its class. Each folder in `root` is a class. The classes
    are numbered from 0 in the sorted order of their names. The images of a class are all image files below
    its folder, in sorted order. The interface is the same as for `torchvision.datasets.ImageFolder`.

    Arguments:
        root: path of the folder.
        transform: a function that is applied to the image. Default: the image stays a `PIL.Image.Image` in mode "RGB".
        target_transform: a function that is applied to the index of the class.
        loader: a function that reads the image at a path. Default: Pillow, which must be installed.
        is_valid_file: a function that takes a path and returns whether the file is an image. By default,
            files with the extension of an image format, such as ".jpg" or ".png", are images.
        allow_empty: whether folders without images are classes. If False, a folder without images raises
            FileNotFoundError.

    Raises FileNotFoundError if there are no classes, or if a class has no images and `allow_empty` is false. An exception
    that is raised while a sample is read has a note with the path of the image.

    Attributes:
        classes: the names of the classes.
        class_to_idx: a dict from the name of a class to its index.
        samples: a list of tuples (path, index of the class); `imgs` is the same list.
        targets: the class index of each image.

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

    imgs: list[tuple[str, int]]

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        loader: Callable[[str], Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        if loader is None:
            require("PIL.Image", "ImageFolder", "images")
            loader = _load_image
        super().__init__(
            root,
            loader,
            None if is_valid_file else _EXTENSIONS,
            transform,
            target_transform,
            is_valid_file,
            allow_empty,
        )
        self.imgs = self.samples


def _load_image(path: str) -> Any:
    image = require("PIL.Image", "ImageFolder", "images")
    with open(path, "rb") as file, image.open(file) as opened:
        return opened.convert("RGB")
