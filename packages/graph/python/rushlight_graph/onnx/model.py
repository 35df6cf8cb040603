"""The file of a model: a ModelProto of nodes, constants and types, and a second file for large tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_graph.onnx import protobuf
from rushlight_graph.onnx.builder import (
    ELEMENT_TYPES,
    Emitted,
    Subgraph,
    ValueType,
    dtype_name,
    nested,
)
from rushlight_graph.onnx.protobuf import Buffer, Message

# The version of the file format that was published with each version of the operators.
_IR_VERSIONS = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10}
OPSETS = tuple(_IR_VERSIONS)
_LARGEST = (1 << 31) - 1  # the largest message of Protocol Buffers, in bytes
_EXTERNAL = 1024  # tensors of at least this number of bytes are written to the second file
_PAGE = 4096  # alignment of tensors in the second file, so that they can be memory-mapped


@dataclass
class Model:
    """A model in ONNX."""

    opset: int
    nodes: list[Emitted]
    initializers: dict[str, Tensor]
    inputs: list[ValueType]
    outputs: list[ValueType]
    metadata: dict[str, str] = field(default_factory=dict)

    def prune(self) -> None:
        """Remove nodes and constants that no output depends on."""
        needed = {output.name for output in self.outputs}
        kept = []
        for node in reversed(self.nodes):
            if needed.intersection(node.outputs):
                needed.update(name for inner in nested([node]) for name in inner.inputs)
                kept.append(node)
        self.nodes = kept[::-1]
        self.initializers = {name: tensor for name, tensor in self.initializers.items() if name in needed}

    def is_large(self) -> bool:
        """Return whether the tensors alone would take more than 2 GB in one file."""
        return sum(t.numel() * t.element_size() for t in self.initializers.values()) > _LARGEST

    def to_bytes(self) -> bytes:
        """Return the file as bytes, including all tensors."""
        pieces = self._pieces([_tensor(name, tensor) for name, tensor in self.initializers.items()])
        return b"".join(pieces)

    def write(self, f: str | os.PathLike[str] | IO[bytes], external: bool, with_inputs: bool = False) -> None:
        """Write the file. If `external` is true, write large tensors to a second file, such as "model.onnx.data".

        Raises:
            ValueError: the file would have more than 2 GB.
        """
        if not isinstance(f, (str, os.PathLike)):
            tensors = [_tensor(name, tensor) for name, tensor in self.initializers.items()]
            for piece in self._pieces(tensors, with_inputs):
                f.write(piece)
            return
        path = Path(os.fspath(f))
        data_path = path.with_name(path.name + ".data")
        tensors, large, end = [], [], 0
        for name, tensor in self.initializers.items():
            if not external or _bytes(tensor).nbytes < _EXTERNAL:
                tensors.append(_tensor(name, tensor))
                continue
            offset = -(-end // _PAGE) * _PAGE
            end = offset + _bytes(tensor).nbytes
            location = {"location": data_path.name, "offset": str(offset), "length": str(end - offset)}
            tensors.append(_tensor(name, tensor, location))
            large.append((offset, tensor))
        pieces = self._pieces(tensors, with_inputs)
        if large:
            with _replacing(data_path) as file:
                for offset, tensor in large:
                    file.write(bytes(offset - file.tell()))
                    file.write(_bytes(tensor))
        with _replacing(path) as file:
            file.writelines(pieces)

    def _pieces(self, tensors: list[Message], with_inputs: bool = False) -> list[Buffer]:
        inputs = list(self.inputs)
        if with_inputs:
            inputs += [
                ValueType(name, dtype_name(tensor.dtype), list(tensor.shape))
                for name, tensor in self.initializers.items()
            ]
        graph = {
            "node": [_node(node, f"{node.op}_{number}") for number, node in enumerate(self.nodes)],
            "name": "main_graph",
            "initializer": tensors,
            "input": [_value(value) for value in inputs],
            "output": [_value(value) for value in self.outputs],
        }
        model = {
            "ir_version": _IR_VERSIONS[self.opset],
            "producer_name": "rushlight",
            "producer_version": core.__version__,
            "graph": graph,
            "opset_import": [{"domain": "", "version": self.opset}],
            "metadata_props": [{"key": key, "value": text} for key, text in self.metadata.items()],
        }
        pieces = protobuf.encode("ModelProto", model)
        size = sum(memoryview(piece).nbytes for piece in pieces)
        if size > _LARGEST:
            raise ValueError(
                f"onnx.export: the file would have {size} bytes, and a file of ONNX has at most {_LARGEST}\n"
                "hint: pass external_data=True and a path for f, so that the weights are written to a second file"
            )
        return pieces


class _replacing:  # noqa: N801  used as a function
    """A context manager that opens a new file and, if the block raises no error, replaces the file at `path` by it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = path.with_name(f".{path.name}.{os.getpid()}")

    def __enter__(self) -> IO[bytes]:
        self._file = open(self._written, "wb")
        return self._file

    def __exit__(self, kind: object, *_: object) -> None:
        self._file.close()
        if kind is None:
            os.replace(self._written, self._path)
        else:
            with suppress(OSError):
                self._written.unlink()


def _bytes(tensor: Tensor) -> memoryview:
    """Return the elements of a tensor, row by row."""
    flat = tensor.detach().contiguous().reshape(-1)
    return memoryview(flat.view(core.uint8).numpy()) if flat.numel() else memoryview(b"")


def _tensor(name: str, tensor: Tensor, location: dict[str, str] | None = None) -> Message:
    message: Message = {
        "dims": list(tensor.shape),
        "data_type": ELEMENT_TYPES[dtype_name(tensor.dtype)],
        "name": name,
    }
    if location is None:
        return message | {"raw_data": _bytes(tensor)}
    entries = [{"key": key, "value": text} for key, text in location.items()]
    return message | {"external_data": entries, "data_location": 1}


def _value(value: ValueType) -> Message:
    dims = [{"dim_param": size} if isinstance(size, str) else {"dim_value": size} for size in value.sizes]
    tensor = {"elem_type": ELEMENT_TYPES[value.dtype], "shape": {"dim": dims}}
    return {"name": value.name, "type": {"tensor_type": tensor}}


def _node(node: Emitted, name: str) -> Message:
    return {
        "input": node.inputs,
        "output": node.outputs,
        "name": name,
        "op_type": node.op,
        "attribute": [_attribute(key, value, name) for key, value in node.attributes.items()],
        "doc_string": node.where,
    }


def _graph(graph: Subgraph, name: str) -> Message:
    return {
        "node": [_node(node, f"{name}_{node.op}_{number}") for number, node in enumerate(graph.nodes)],
        "name": name,
        "input": [_value(value) for value in graph.inputs],
        "output": [_value(value) for value in graph.outputs],
    }


_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 5, 6, 7, 8


def _attribute(name: str, value: Any, node: str) -> Message:
    if isinstance(value, Subgraph):
        return {"name": name, "g": _graph(value, f"{node}_{name}"), "type": _GRAPH}
    if isinstance(value, Tensor):
        return {"name": name, "t": _tensor("", value), "type": _TENSOR}
    if isinstance(value, str):
        return {"name": name, "s": value.encode(), "type": _STRING}
    if isinstance(value, float):
        return {"name": name, "f": value, "type": _FLOAT}
    if isinstance(value, Sequence):
        if value and isinstance(value[0], str):
            return {"name": name, "strings": [item.encode() for item in value], "type": _STRINGS}
        if value and isinstance(value[0], float):
            return {"name": name, "floats": list(value), "type": _FLOATS}
        return {"name": name, "ints": list(value), "type": _INTS}
    return {"name": name, "i": int(value), "type": _INT}
