"""A dataset of the rows of tensors in a safetensors file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import rushlight_core as core

from .dataset import Dataset
from .optional import require

__all__ = ["SafetensorsDataset"]

# For each dtype of the format, NumPy's dtype of the bytes and core's dtype.
_DTYPES = {
    "BOOL": ("bool", core.bool),
    "U8": ("u1", core.uint8),
    "I8": ("i1", core.int8),
    "U16": ("<u2", core.uint16),
    "I16": ("<i2", core.int16),
    "F16": ("<f2", core.float16),
    "BF16": ("<i2", core.bfloat16),
    "U32": ("<u4", core.uint32),
    "I32": ("<i4", core.int32),
    "F32": ("<f4", core.float32),
    "U64": ("<u8", core.uint64),
    "I64": ("<i8", core.int64),
    "F64": ("<f8", core.float64),
    "C64": ("<c8", core.complex64),
    "F8_E4M3": ("u1", core.float8_e4m3fn),
    "F8_E5M2": ("u1", core.float8_e5m2),
    "F8_E4M3FNUZ": ("u1", core.float8_e4m3fnuz),
    "F8_E5M2FNUZ": ("u1", core.float8_e5m2fnuz),
    "F8_E8M0": ("u1", core.float8_e8m0fnu),
}


class SafetensorsDataset(Dataset[dict[str, core.Tensor]]):
    """A dataset of the rows of the tensors in a safetensors file. A sample is a dict with one row of each tensor.

    The file is mapped to memory: only the rows that are used are read, and the pages are shared by all workers.

    Arguments:
        path: path of the file.
        keys: names of the tensors, which have the same first dimension. Default: all.

    Raises ModuleNotFoundError if the package safetensors is not installed, ValueError if a tensor is missing or the first
    dimensions differ, and TypeError for a dtype that core does not support. If the header of the file is not valid, the
    error of the package safetensors is raised, with a note that contains the path.

    Example:
        >>> import numpy as np
        >>> from safetensors.numpy import save_file
        >>> save_file({"x": np.zeros((4, 2), np.float32), "y": np.arange(4)}, "data.safetensors")
        >>> dataset = SafetensorsDataset("data.safetensors")
        >>> len(dataset), dataset[3]["y"]
        (4, tensor(3))

    Shape:
        - Tensors of the file: (N, *), with the same N.
        - Tensors of a sample: (*). Tensors of a batch of B samples: (B, *).
    """

    draws_random = False
    path: str
    keys: list[str]

    def __init__(self, path: str | os.PathLike[str], keys: Sequence[str] | None = None) -> None:
        self.path = os.path.abspath(path)
        self._requested = None if keys is None else list(keys)
        self._open()

    def _open(self) -> None:
        import numpy as np

        header, begin = _read_header(self.path)
        self.keys = sorted(header) if self._requested is None else self._requested
        if not self.keys:
            raise ValueError(f"SafetensorsDataset(path): {self.path!r} has no tensors")
        self._arrays: dict[str, tuple[Any, core.dtype]] = {}
        for name in self.keys:
            if name not in header:
                raise ValueError(
                    f"SafetensorsDataset(keys): {self.path!r} has no tensor {name!r}; it has {', '.join(sorted(header))}"
                )
            entry = header[name]
            if entry["dtype"] not in _DTYPES:
                raise TypeError(
                    f"SafetensorsDataset(path): tensor {name!r} of {self.path!r} has the unsupported dtype "
                    f"{entry['dtype']}"
                )
            stored, dtype = _DTYPES[entry["dtype"]]
            shape, offset = tuple(entry["shape"]), begin + entry["data_offsets"][0]
            if 0 in shape:
                array: Any = np.empty(shape, stored)  # nothing can be mapped
            else:
                array = np.memmap(self.path, stored, "r", offset, shape)
            self._arrays[name] = array, dtype
        shapes = {name: array.shape for name, (array, _) in self._arrays.items()}
        if () in shapes.values() or len({shape[0] for shape in shapes.values()}) > 1:
            raise ValueError(
                "SafetensorsDataset(keys): the tensors must have the same first dimension, got shapes "
                f"{shapes} in {self.path!r}"
            )
        self._length = int(next(iter(shapes.values()))[0])

    def __getitem__(self, index: int) -> dict[str, core.Tensor]:
        if not -self._length <= index < self._length:
            raise IndexError(
                f"SafetensorsDataset: index {index} is out of range for {self._length} rows of {self.path!r}"
            )
        return self._rows(index)

    def __getbatch__(self, indices: Sequence[int]) -> dict[str, core.Tensor]:
        return self._rows(list(indices))

    def _rows(self, where: Any) -> dict[str, core.Tensor]:
        import numpy as np

        rows = {}
        for name, (array, dtype) in self._arrays.items():
            tensor = core.as_tensor(np.array(array[where]))
            rows[name] = tensor if tensor.dtype == dtype else tensor.view(dtype)
        return rows

    def __len__(self) -> int:
        return self._length

    def __getstate__(self) -> dict[str, Any]:
        # A mapped array would be pickled with its elements.
        return {"path": self.path, "_requested": self._requested}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def _read_header(path: str) -> tuple[dict[str, Any], int]:
    """Return the header's entries for the tensors, and the position in the file at which the data begins."""
    safetensors = require("safetensors", "SafetensorsDataset", "safetensors")
    try:
        with safetensors.safe_open(path, framework="numpy"):  # checks sizes, offsets and overlaps
            pass
    except Exception as error:
        error.add_note(f"in SafetensorsDataset(path={path!r})")
        raise
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return header, 8 + size
