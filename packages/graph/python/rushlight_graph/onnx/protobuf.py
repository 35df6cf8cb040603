"""Encode and decode the messages of an ONNX file as dicts. Only the part of Protocol Buffers that
these messages need is implemented.

The format is described at https://protobuf.dev/programming-guides/encoding; onnx.proto defines the messages.
Fields that are not in `MESSAGES` are skipped when a message is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]
Buffer = bytes | memoryview

# For each field: its name, number and type. "*" marks a repeated field; a type that begins with a capital is a
# message.
MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "ModelProto": {
        "ir_version": (1, "int"),
        "producer_name": (2, "str"),
        "producer_version": (3, "str"),
        "graph": (7, "GraphProto"),
        "opset_import": (8, "*OperatorSetIdProto"),
        "metadata_props": (14, "*StringStringEntryProto"),
        "functions": (25, "*FunctionProto"),
    },
    "OperatorSetIdProto": {"domain": (1, "str"), "version": (2, "int")},
    "FunctionProto": {"name": (1, "str")},
    "GraphProto": {
        "node": (1, "*NodeProto"),
        "name": (2, "str"),
        "initializer": (5, "*TensorProto"),
        "input": (11, "*ValueInfoProto"),
        "output": (12, "*ValueInfoProto"),
        "value_info": (13, "*ValueInfoProto"),
        "sparse_initializer": (15, "*SparseTensorProto"),
    },
    "NodeProto": {
        "input": (1, "*str"),
        "output": (2, "*str"),
        "name": (3, "str"),
        "op_type": (4, "str"),
        "attribute": (5, "*AttributeProto"),
        "doc_string": (6, "str"),
        "domain": (7, "str"),
    },
    "AttributeProto": {
        "name": (1, "str"),
        "f": (2, "float"),
        "i": (3, "int"),
        "s": (4, "bytes"),
        "t": (5, "TensorProto"),
        "g": (6, "GraphProto"),
        "floats": (7, "*float"),
        "ints": (8, "*int"),
        "strings": (9, "*bytes"),
        "type": (20, "int"),
    },
    "TensorProto": {
        "dims": (1, "*int"),
        "data_type": (2, "int"),
        "float_data": (4, "*float"),
        "int32_data": (5, "*int"),
        "string_data": (6, "*bytes"),
        "int64_data": (7, "*int"),
        "name": (8, "str"),
        "raw_data": (9, "bytes"),
        "double_data": (10, "*double"),
        "uint64_data": (11, "*int"),
        "external_data": (13, "*StringStringEntryProto"),
        "data_location": (14, "int"),
    },
    "SparseTensorProto": {"dims": (3, "*int")},
    "ValueInfoProto": {"name": (1, "str"), "type": (2, "TypeProto"), "doc_string": (3, "str")},
    "TypeProto": {"tensor_type": (1, "TypeProto.Tensor")},
    "TypeProto.Tensor": {"elem_type": (1, "int"), "shape": (2, "TensorShapeProto")},
    "TensorShapeProto": {"dim": (1, "*Dimension")},
    "Dimension": {"dim_value": (1, "int"), "dim_param": (2, "str")},
    "StringStringEntryProto": {"key": (1, "str"), "value": (2, "str")},
}
_BY_NUMBER = {
    message: {number: (name, kind) for name, (number, kind) in fields.items()}
    for message, fields in MESSAGES.items()
}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class ProtobufError(ValueError):
    """Raised if bytes are not a valid message."""


# --- to bytes ---


def encode(message: str, fields: Message) -> list[Buffer]:
    """Return the bytes of a message as a list of pieces, so that fields of type bytes are not copied."""
    return _encode(message, fields)[0]


def _encode(message: str, fields: Message) -> tuple[list[Buffer], int]:
    pieces: list[Buffer] = []
    head = bytearray()
    size = 0
    for name, value in fields.items():
        number, kind = MESSAGES[message][name]
        repeated, kind = kind[0] == "*", kind.lstrip("*")
        for item in value if repeated else (value,):
            if kind == "int":
                head += _varint(number << 3 | _VARINT) + _varint(item)
            elif kind == "float":
                head += _varint(number << 3 | _FIXED32) + struct.pack("<f", item)
            elif kind == "double":
                head += _varint(number << 3 | _FIXED64) + struct.pack("<d", item)
            elif kind[0].isupper():
                inner, length = _encode(kind, item)
                head += _varint(number << 3 | _BYTES) + _varint(length)
                if len(inner) == 1:
                    head += inner[0]
                else:
                    pieces += [bytes(head), *inner]
                    size += len(head) + length
                    head = bytearray()
            else:
                data = item.encode() if kind == "str" else item
                length = memoryview(data).nbytes
                head += _varint(number << 3 | _BYTES) + _varint(length)
                if length < 4096:
                    head += data
                else:
                    pieces += [bytes(head), data]
                    size += len(head) + length
                    head = bytearray()
    if head or not pieces:
        pieces.append(bytes(head))
        size += len(head)
    return pieces, size


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF  # negative numbers are encoded in ten bytes
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# --- from bytes ---


def decode(message: str, data: memoryview, depth: int = 0) -> Message:
    """Return the fields that a message contains; repeated fields are lists, and bytes are views of `data`.

    Raises:
        ProtobufError: the bytes are not a message, or messages are nested deeper than 32.
    """
    if depth > 32:
        raise ProtobufError(f"{message}: messages are nested deeper than 32")
    fields: Message = {name: [] for name, (_, kind) in MESSAGES[message].items() if kind[0] == "*"}
    for number, wire, value in _fields(message, data):
        known = _BY_NUMBER[message].get(number)
        if known is None:
            continue
        name, kind = known
        repeated, kind = kind[0] == "*", kind.lstrip("*")
        items = _values(message, name, kind, wire, value, repeated, depth)
        if repeated:
            fields[name] += items
        else:
            fields[name] = items[-1]
    return fields


def _fields(message: str, data: memoryview) -> Iterator[tuple[int, int, Any]]:
    at, end = 0, len(data)
    while at < end:
        tag, at = _read_varint(message, data, at)
        wire = tag & 7
        value: Any
        if wire == _VARINT:
            value, at = _read_varint(message, data, at)
        else:
            if wire == _BYTES:
                size, at = _read_varint(message, data, at)
            elif wire in (_FIXED32, _FIXED64):
                size = 4 if wire == _FIXED32 else 8
            else:
                raise ProtobufError(f"{message}: unknown wire type {wire} at byte {at}")
            if size > end - at:
                raise ProtobufError(
                    f"{message}: a field needs {size} bytes at byte {at}, but only {end - at} are left"
                )
            value = data[at : at + size]
            at += size
        yield tag >> 3, wire, value


def _read_varint(message: str, data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ProtobufError(f"{message}: invalid integer before byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _values(
    message: str, name: str, kind: str, wire: int, value: Any, repeated: bool, depth: int
) -> list[Any]:
    numbers = {"int": _VARINT, "float": _FIXED32, "double": _FIXED64}
    wanted = numbers.get(kind, _BYTES)
    if kind in numbers and wire == _BYTES and repeated:  # packed
        if kind != "int":
            item = struct.Struct("<f" if kind == "float" else "<d")
            if len(value) % item.size:
                raise ProtobufError(
                    f"{message}.{name}: the length, {len(value)} bytes, is not a multiple of the element size, {item.size}"
                )
            return [number for (number,) in item.iter_unpack(value)]
        found, at = [], 0
        while at < len(value):
            integer, at = _read_varint(message, value, at)
            found.append(_signed(integer))
        return found
    if wire != wanted:
        raise ProtobufError(f"{message}.{name}: expected wire type {wanted}, got {wire}")
    if kind == "int":
        return [_signed(value)]
    if kind in numbers:
        return list(struct.unpack("<f" if kind == "float" else "<d", value))
    if kind == "str":
        try:
            return [str(value, "utf-8")]
        except UnicodeDecodeError:
            raise ProtobufError(f"{message}.{name}: the text is not valid UTF-8") from None
    if kind == "bytes":
        return [value]
    return [decode(kind, value, depth + 1)]


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
