"""Read and write safetensors files: the length of the header, the header in JSON, and the bytes of the tensors.

The header is checked for duplicate names, for overlaps and gaps between tensors, and for sizes that are too
large. Bytes are transferred between the file and the memory of a tensor without an intermediate copy.
"""

from __future__ import annotations

import json
import math
import re

import rushlight_core as core
from rushlight_core import Tensor

from .errors import Budget, FormatError
from .geometry import MAX_DIMENSIONS, check_bools
from .source import Source, crc32

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
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}

# The limit of other readers of the format.
MAX_HEADER_BYTES = 100_000_000
# The data begins at a multiple of this, so that elements are aligned in a memory map of the file.
_ALIGNMENT = 64
# A JSON string, matched without backtracking.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# Number of bytes written at once if checksums are computed, so that they are still in the cache when they are
# written.
_CHUNK = 1 << 20


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype in the safetensors format.

    Raises:
        TypeError: the safetensors format does not support the dtype.
    """
    for name, ours in _DTYPES.items():
        if getattr(core, ours, None) is dtype or getattr(core, ours, None) == dtype:
            return name
    raise TypeError(
        f"save: tensors of dtype {dtype} cannot be saved\nhint: convert the tensor with tensor.to(...)"
    )


def memory_of(tensor: Tensor) -> memoryview:
    """Return a memoryview of the bytes of a contiguous tensor on the CPU, without a copy."""
    if tensor.numel() == 0:
        return memoryview(b"")
    # Use the buffer of the storage, because Python's buffers have no format for bfloat16.
    begin = tensor.storage_offset() * tensor.itemsize
    return memoryview(tensor.untyped_storage())[begin : begin + tensor.nbytes]


# Writing ----------------------------------------------------------------------------------------------------


def checksum(tensor: Tensor) -> int:
    """Return the checksum of the dtype, the shape and the bytes of a tensor."""
    return crc32(memory_of(tensor), _begin_checksum(tensor))


def _begin_checksum(tensor: Tensor) -> int:
    return crc32(f"{dtype_name(tensor.dtype)}{list(tensor.shape)}".encode())


def write(
    file: BinaryIO,
    tensors: dict[str, Tensor],
    metadata: dict[str, str],
    checksums: dict[str, int] | None = None,
) -> None:
    """Write contiguous CPU `tensors` and `metadata` to `file`, and store the tensors' checksums in `checksums`."""
    header: dict[str, Any] = {"__metadata__": metadata}
    # Write tensors with wide elements first, so that all elements are aligned.
    ordered = sorted(tensors.items(), key=lambda item: -item[1].itemsize)
    position = 0
    for name, tensor in ordered:
        header[name] = {
            "dtype": dtype_name(tensor.dtype),
            "shape": list(tensor.shape),
            "data_offsets": [position, position + tensor.nbytes],
        }
        position += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(
            f"save: the header of the file takes {len(text)} bytes, more than the {MAX_HEADER_BYTES} allowed"
        )
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name, tensor in ordered:
        memory = memory_of(tensor)
        if checksums is None:
            file.write(memory)
            continue
        crc = _begin_checksum(tensor)
        for begin in range(0, len(memory), _CHUNK):
            part = memory[begin : begin + _CHUNK]
            crc = crc32(part, crc)
            file.write(part)
        checksums[name] = crc


# Reading ----------------------------------------------------------------------------------------------------


class Entry:
    """The description of a tensor in the header. The tensor's data begins at byte `begin` of the file."""

    __slots__ = ("begin", "dtype", "name", "shape", "size")

    def __init__(self, name: str, dtype: str, shape: list[int], begin: int, size: int) -> None:
        self.name: str = name
        self.dtype: str = dtype
        self.shape: list[int] = shape
        self.begin: int = begin
        self.size: int = size

    @property
    def kind(self) -> bytes:
        """The dtype and the shape as bytes. The checksum of the tensor covers these bytes and the elements."""
        return f"{self.dtype}{list(self.shape)}".encode()


def read_header(source: Source, budget: Budget) -> tuple[dict[str, str], list[Entry]]:
    """Return the metadata, and the entries of the tensors in the order of their data.

    Raises:
        FormatError: the file is not a valid safetensors file.
    """
    if source.size < 8:
        raise FormatError("the file is shorter than any checkpoint: truncated, or not a checkpoint")
    count = int.from_bytes(source.read(0, 8), "little")
    if count > min(source.size - 8, MAX_HEADER_BYTES):
        raise FormatError(f"truncated, or not a checkpoint: the header would have {count} bytes")
    header = parse_json(source.read(8, count), budget)
    metadata = header.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise FormatError("the metadata of the file are not strings")
    entries = [_read_entry(name, description, 8 + count) for name, description in header.items()]
    entries.sort(key=lambda entry: (entry.begin, entry.size))
    position = 8 + count
    for entry in entries:
        if entry.begin != position:
            raise FormatError(
                f"truncated or damaged: tensor {entry.name!r:.80} does not begin where the tensor before it ends"
            )
        position += entry.size
    if position != source.size:
        raise FormatError(
            f"truncated or damaged: the file has {source.size} bytes, but the tensors end at byte {position}"
        )
    return metadata, entries


def _read_entry(name: str, description: Any, begin: int) -> Entry:
    """Return the entry of a tensor that `description` describes. The tensors begin at position `begin` of the file."""
    given: dict[str, Any] = description if isinstance(description, dict) else {}
    dtype, shape, offsets = given.get("dtype"), given.get("shape", 0), given.get("data_offsets", 0)
    if not isinstance(dtype, str) or not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise FormatError(f"the description of tensor {name!r:.80} cannot be read")
    if dtype not in _DTYPES or not hasattr(core, _DTYPES[dtype]):
        raise FormatError(
            f"tensor {name!r:.80} has dtype {dtype!r:.20}, which rushlight-core does not support"
        )
    if len(shape) > MAX_DIMENSIONS:
        raise FormatError(f"tensor {name!r:.80} has {len(shape)} dimensions, needs at most {MAX_DIMENSIONS}")
    size = math.prod(shape) * getattr(core, _DTYPES[dtype]).itemsize
    if offsets[1] - offsets[0] != size:
        raise FormatError(
            f"tensor {name!r:.80} needs {size} bytes, but the file stores {offsets[1] - offsets[0]} bytes for it (offsets"
            f" {offsets[0]} to {offsets[1]})"
        )
    return Entry(name, dtype, shape, begin + offsets[0], size)


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**62 for v in values)


def _cost_of(text: str) -> int:
    """Estimate the memory that the objects of a JSON text need, from the punctuation outside strings."""
    # Bytes: 72 for `[]` and 80 for `{}`, more with a first item, 32 for a number, 9 for a slot in a list, 50 for a
    # string.
    bare = _STRING.sub('"', text)
    braces, brackets, colons = bare.count("{"), bare.count("["), bare.count(":")
    full, lists = braces - bare.count("{}"), brackets - bare.count("[]")
    objects = 80 * braces + 160 * full + 72 * brackets + 32 * lists
    numbers = bare.count(",") - bare.count("],") - bare.count("},") - bare.count('",')
    return (
        objects
        + 32 * numbers
        + 9 * bare.count(",")
        + 90 * max(colons - full, 0)
        + 50 * bare.count('"')
        + 2 * len(text)
    )


def parse_json(text: str | bytes, budget: Budget) -> Any:
    """Return the JSON object in `text`, after checking that its memory fits in `budget` and that no key occurs twice.

    Raises:
        FormatError: the text is not a JSON object, contains a key twice, or needs too much memory.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        budget.charge(_cost_of(text))
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the header cannot be read ({error})") from None
    if not isinstance(found, dict):
        raise FormatError("the header is not a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def read_tensor(source: Source, entry: Entry, checked: bool, crc: int = 0) -> tuple[Tensor, int]:
    """Return the tensor of `entry`, and the checksum `crc` updated with the bytes of the tensor.

    Raises:
        FormatError: the file ends early, or a tensor of bools has bytes other than 0 and 1.
    """
    dtype = getattr(core, _DTYPES[entry.dtype])
    storage, crc = source.storage(entry.begin, entry.size, min(dtype.itemsize, 8), checked, crc)
    if dtype == core.bool:
        check_bools(storage)
    return core._C._tensor_over(storage, dtype, entry.shape, contiguous(entry.shape), 0), crc


def contiguous(shape: list[int]) -> list[int]:
    """Return the strides of a contiguous tensor of `shape`."""
    strides = [math.prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape))]
    # The strides of a tensor without elements have no meaning, and may be too large for core.
    return strides if 0 not in shape else [0] * len(shape)
