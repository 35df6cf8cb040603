"""A dataset of NumPy arrays, in memory or in files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import rushlight_core as core

from .dataset import Dataset

__all__ = ["ArrayDataset"]


class ArrayDataset(Dataset[tuple[Any, ...]]):
    """A dataset of NumPy arrays of equal length. A sample is a tuple with one row of each array.

    An array may be given as the path of a ".npy" file. The file is mapped to memory: only the rows that are
    accessed are read, and all workers share the memory. A `DataLoader` with the default collation reads a
    whole batch at once.

    Arguments:
        arrays: arrays, or paths of ".npy" files.

    Raises TypeError for an argument that is neither an array nor a path, and ValueError if there is no array, the first
    dimensions differ, or a file is damaged or contains Python objects.

    Example:
        >>> import numpy as np
        >>> np.save("images.npy", np.zeros((4, 2, 2), np.uint8))
        >>> dataset = ArrayDataset("images.npy", np.arange(4))
        >>> len(dataset), dataset[1][0].shape
        (4, (2, 2))
    """

    draws_random = False
    arrays: tuple[Any, ...]

    def __init__(self, *arrays: Any) -> None:
        self._sources = tuple(
            os.path.abspath(array) if isinstance(array, (str, os.PathLike)) else array for array in arrays
        )
        self._open()

    def _open(self) -> None:
        import numpy as np

        if not self._sources:
            raise ValueError("ArrayDataset(*arrays): must have at least one array")
        self.arrays = tuple(_map(source) if isinstance(source, str) else source for source in self._sources)
        for i, array in enumerate(self.arrays):
            if not isinstance(array, np.ndarray):
                raise TypeError(
                    f"ArrayDataset(*arrays): item {i} must be an array or a path, got {type(array).__name__}"
                )
            if array.ndim == 0 or len(array) != len(self.arrays[0]):
                raise ValueError(
                    "ArrayDataset(*arrays): the arrays must have the same first dimension, got shapes "
                    f"{[part.shape for part in self.arrays]}"
                )

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(array[index] for array in self.arrays)

    def __getbatch__(self, indices: Sequence[int]) -> list[core.Tensor]:
        return [core.as_tensor(array[list(indices)]) for array in self.arrays]

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getstate__(self) -> dict[str, Any]:
        # A mapped array would be pickled with its elements.
        return {"_sources": self._sources}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def _map(path: str) -> Any:
    """Map the array in a ".npy" file to memory."""
    import numpy as np

    try:
        return np.load(path, mmap_mode="r")
    except ValueError as error:
        error.add_note(f"in ArrayDataset, while opening {path!r}")
        raise
