"""The safetensors container: a length, a JSON header, the bytes of the tensors.

The package of that name reads the header: its checks of hostile files (overlaps, gaps, overflow) are hardened
by use. The bytes go from the file to a tensor's memory, and back, without a copy in between. Writing the
header is three lines, which stay the same while the package's writing functions change from version to
version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import rushlight_core as core
from rushlight_core import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

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

# What readers of the format accept.
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
    # The storage's buffer, not the tensor's: Python has no format for bfloat16.
    begin = tensor.storage_offset() * tensor.itemsize
    return memoryview(tensor.untyped_storage())[begin : begin + tensor.nbytes]


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

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, name: str, dtype: str, shape: list[int]) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape


def read_header(path: str) -> tuple[dict[str, str], list[Entry], int]:
    """The metadata, the tensors in the order of their data, and where the data begins, of the file at `path`.

    Raises:
        FormatError: the file is not what the format says.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        start = file.read(8)
    if len(start) < 8:
        raise FormatError("it is shorter than any checkpoint: truncated, or no checkpoint")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            entries = []
            for name in file.offset_keys():
                view = file.get_slice(name)
                entries.append(Entry(name, str(view.get_dtype()), list(view.get_shape())))
            metadata = file.metadata() or {}
    except SafetensorError as error:
        # Not asked before: the length of a header may begin with the same bytes.
        if start[:4] == b"PK\x03\x04" or start[:2] == b"\x80\x02":
            raise FormatError(
                "this is a pickled PyTorch checkpoint, which could run any code when it is opened\n"
                "hint: where it is trusted, convert it: safetensors.torch.save_file(torch.load(path), new)"
            ) from None
        raise FormatError(f"truncated, altered, or no checkpoint ({error})") from None
    for entry in entries:
        if entry.dtype not in _DTYPES or not hasattr(core, _DTYPES[entry.dtype]):
            raise FormatError(
                f"tensor {entry.name!r} has dtype {entry.dtype}, which rushlight-core does not have"
            )
    return metadata, entries, 8 + int.from_bytes(start, "little")


def read_tensors(
    file: BinaryIO, entries: list[Entry], begin: int
) -> Iterator[tuple[Entry, Tensor, memoryview]]:
    """Each tensor with its memory. The data follows from byte `begin` on without gaps, as the header's reader
    made sure.

    Raises:
        FormatError: the file ends early: it has changed since the header was read.
    """
    file.seek(begin)
    for entry in entries:
        tensor = core.empty(entry.shape, dtype=getattr(core, _DTYPES[entry.dtype]), device="cpu")
        memory = rest = memory_of(tensor)
        while len(rest):
            count = file.readinto(rest)  # type: ignore[attr-defined]
            if not count:
                raise FormatError(f"the file ends within tensor {entry.name!r}")
            rest = rest[count:]
        if entry.dtype == "BOOL" and bytes(memory).strip(b"\x00\x01"):
            raise FormatError(f"tensor {entry.name!r} holds bytes that are neither true nor false")
        yield entry, tensor, memory
