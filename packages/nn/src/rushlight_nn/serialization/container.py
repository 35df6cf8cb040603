"""The safetensors container: a length, a JSON header, the bytes of the tensors.

The format is public (github.com/huggingface/safetensors) and small; reading and writing it here takes no copy
of the tensors: bytes go from a tensor's memory to the file, and back. Every number of a header that is read
is checked before it is used: offsets must cover the data without gap or overlap, and agree with dtype and
shape.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, BinaryIO

import rushlight_core as core
from rushlight_core import Tensor

_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "I64": "int64",
    "U64": "uint64",
    "F64": "float64",
}
_SIZES = {"BOOL": 1, "8": 1, "16": 2, "32": 4, "64": 8}

# More than any real header, less than what would exhaust memory; the reference implementation's limit.
MAX_HEADER_BYTES = 100_000_000


class FormatError(Exception):
    """What is wrong with a file, in words."""


def dtype_name(dtype: Any) -> str:
    """The format's name of a dtype of core's.

    Raises:
        TypeError: the format has no such dtype.
    """
    for name, ours in _DTYPES.items():
        if getattr(core, ours, None) is dtype or getattr(core, ours, None) == dtype:
            return name
    raise TypeError(
        f"save: tensors of dtype {dtype} cannot be saved\nhint: convert it first, with tensor.to(...)"
    )


def _item_size(name: str) -> int:
    return _SIZES.get(name) or _SIZES[name.lstrip("BUIF")]


def memory_of(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor on the CPU, as bytes."""
    if tensor.numel() == 0:
        return memoryview(b"")
    flat = tensor.detach().reshape(-1).view(core.uint8)
    try:
        return memoryview(flat)
    except TypeError:
        return memoryview(flat.numpy())


# Writing ----------------------------------------------------------------------------------------------------


def write(file: BinaryIO, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write contiguous CPU `tensors` and `metadata` to `file`."""
    header: dict[str, Any] = {"__metadata__": metadata}
    position = 0
    for name, tensor in tensors.items():
        kind = dtype_name(tensor.dtype)
        size = tensor.numel() * _item_size(kind)
        header[name] = {
            "dtype": kind,
            "shape": list(tensor.shape),
            "data_offsets": [position, position + size],
        }
        position += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the data is aligned
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(
            f"save: the description takes {len(text)} bytes, more than the {MAX_HEADER_BYTES} allowed"
        )
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for tensor in tensors.values():
        file.write(memory_of(tensor))


# Reading ----------------------------------------------------------------------------------------------------


class Entry:
    """A tensor as the header describes it."""

    __slots__ = ("begin", "dtype", "end", "name", "shape")

    def __init__(self, name: str, description: Any) -> None:
        self.name = name
        if not isinstance(description, dict) or set(description) != {"dtype", "shape", "data_offsets"}:
            raise FormatError(f"the header does not describe tensor {name!r}")
        self.dtype = description["dtype"]
        if not isinstance(self.dtype, str) or self.dtype not in _DTYPES:
            raise FormatError(f"tensor {name!r} has the unknown dtype {self.dtype!r}")
        shape, offsets = description["shape"], description["data_offsets"]
        if not are_sizes(shape) or not are_sizes(offsets) or len(offsets) != 2:
            raise FormatError(f"the header gives no valid shape and place of tensor {name!r}")
        self.shape = shape
        self.begin, self.end = offsets
        if self.end - self.begin != math.prod(shape) * _item_size(self.dtype):
            raise FormatError(
                f"tensor {name!r} takes bytes {self.begin} to {self.end}, which does not fit {self.dtype} "
                f"of shape {tuple(shape)}"
            )


def are_sizes(values: Any) -> bool:
    """Whether `values` is a list of possible sizes."""
    # Python's ints do not overflow, so that a size is wrong or right; the bound keeps core from overflowing.
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**63 for v in values)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise FormatError("the header names something twice")
    return result


def read_header(file: BinaryIO, size: int) -> tuple[dict[str, str], list[Entry]]:
    """The metadata and the entries, in the order of their data, of a file of `size` bytes.

    Raises:
        FormatError: the file is not what the format says.
    """
    start = file.read(8)
    if len(start) < 8:
        raise FormatError(f"the file has {size} bytes, a checkpoint has more")
    if start[:4] == b"PK\x03\x04" or start[:2] == b"\x80\x02":
        raise FormatError(
            "this is a pickled PyTorch checkpoint, which could run any code when it is opened\n"
            "hint: where it is trusted, convert it: safetensors.torch.save_file(torch.load(path), new_path)"
        )
    length = int.from_bytes(start, "little")
    if length > MAX_HEADER_BYTES or length > size - 8:
        raise FormatError(
            f"it announces a header of {length} bytes and has {size - 8}: truncated, or no checkpoint"
        )
    text = file.read(length)
    if len(text) != length or not text.startswith(b"{"):
        raise FormatError("the header is truncated or not what it should be")
    try:
        header = json.loads(text.decode(), object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the header cannot be read ({type(error).__name__}: {error})") from None
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise FormatError("the header's metadata is not made of strings")
    entries = sorted((Entry(name, value) for name, value in header.items()), key=lambda e: (e.begin, e.end))
    position = 0
    for entry in entries:
        if entry.begin != position:
            raise FormatError(
                f"the data of tensor {entry.name!r} begins at byte {entry.begin}, not at {position}"
            )
        position = entry.end
    if position != size - 8 - length:
        raise FormatError(
            f"the tensors take {position} bytes, the file has {size - 8 - length}: truncated or altered"
        )
    return metadata, entries


def read_tensors(file: BinaryIO, entries: list[Entry]) -> Iterator[tuple[Entry, Tensor, memoryview]]:
    """Each tensor with its memory, read in the order of the file."""
    for entry in entries:
        dtype = getattr(core, _DTYPES[entry.dtype], None)
        if dtype is None:
            raise FormatError(
                f"tensor {entry.name!r} has dtype {_DTYPES[entry.dtype]}, which this core does not have"
            )
        tensor = core.empty(entry.shape, dtype=dtype)
        memory = memory_of(tensor)
        view = memory
        while len(view):
            count = file.readinto(view)  # type: ignore[attr-defined]
            if not count:
                raise FormatError(f"the file ends within tensor {entry.name!r}")
            view = view[count:]
        if entry.dtype == "BOOL" and entry.end > entry.begin and bytes(memory).strip(b"\x00\x01"):
            raise FormatError(f"tensor {entry.name!r} holds bytes that are neither true nor false")
        yield entry, tensor, memory
