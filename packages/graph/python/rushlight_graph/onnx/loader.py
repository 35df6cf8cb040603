"""`onnx.load`: read a model as a program. The model may contain only operators that `onnx.export` writes.

Note [Loading]
`load` captures a function that computes the model's nodes one after the other. Integers that shapes depend
on (results of Shape, small constants, and values computed from them) are Python integers in this function,
not tensors. Dynamic sizes are therefore determined as in every other capture; see Note [Fitting] in
fitting.h.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_graph.capture import capture, capture_sizes
from rushlight_graph.dynamic import Derived, Dim
from rushlight_graph.exported import ExportedProgram
from rushlight_graph.onnx import layers_of_nodes, protobuf  # noqa: F401  layers_of_nodes registers functions
from rushlight_graph.onnx.builder import ELEMENT_TYPES
from rushlight_graph.onnx.calls_of_nodes import CALLS, Known, NodeError
from rushlight_graph.onnx.exporter import METADATA, OnnxLoadError
from rushlight_graph.onnx.model import OPSETS
from rushlight_graph.onnx.protobuf import Message, ProtobufError

_DTYPES = {number: name for name, number in ELEMENT_TYPES.items()}
_NUMPY = {name: name for name in ELEMENT_TYPES} | {"bool": "bool_", "bfloat16": "uint16"}
_SIZE = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)([+-]\d+)?\Z")
_SMALL = 64  # constants of at most this number of elements are also kept as integers
_EXAMPLE = 16  # the size in the capture, if the model does not contain an example size


# Errors that core and Python raise for invalid arguments of an operator, missing attributes and similar faults of a
# model.
_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


def load(f: str | os.PathLike[str] | IO[bytes]) -> ExportedProgram:
    """Read an ONNX model as a program; see `rushlight_graph.onnx.load`.

    Args:
        f: a path, or an open binary file. A model whose tensors are in other files must be loaded by its path; the other
            files must be in the model's folder.

    Raises:
        OnnxLoadError: the file is not a model, or has operators, dtypes or versions other than those that `export` writes.

    Example:
        >>> _ = torch.onnx.export(nn.ReLU(), (torch.ones(3),), "relu.onnx")
        >>> load("relu.onnx").module()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0., 0., 1.])
    """
    folder: Path | None = None
    if isinstance(f, (str, os.PathLike)):
        folder = Path(os.fspath(f)).parent
        data = Path(os.fspath(f)).read_bytes()
    else:
        data = f.read()
    try:
        model = protobuf.decode("ModelProto", memoryview(data))
    except ProtobufError as error:
        raise OnnxLoadError(f"onnx.load: the file is not a model: {error}") from None
    _check(model)
    texts = {entry.get("key", ""): entry.get("value", "") for entry in model["metadata_props"]}
    graph = model["graph"]
    constants = dict(_tensor(entry, folder) for entry in graph["initializer"])
    inputs = [value for value in graph["input"] if value.get("name", "") not in constants]
    try:
        args, shapes = _examples(inputs, texts)
    except (MemoryError, OverflowError, RuntimeError, TypeError) as error:
        raise OnnxLoadError(f"onnx.load: an example input cannot be created: {error}") from None
    run = _Interpreter(graph, constants, [value.get("name", "") for value in inputs])
    state = [
        (name, "parameter" if tensor.is_floating_point() else "buffer", tensor)
        for name, tensor in constants.items()
    ]
    try:
        with core.no_grad():
            if shapes is None:
                program = capture(run, args, {}, state)
            else:
                program = capture_sizes(run, args, {}, state, None, shapes)
    except NodeError as error:
        raise OnnxLoadError(f"onnx.load: {error}") from error.__cause__
    except RuntimeError as error:
        raise OnnxLoadError(f"onnx.load: the model cannot be converted to a program: {error}") from error
    own = {key: texts[METADATA + key] for key in ("arguments", "results") if METADATA + key in texts}
    return ExportedProgram(program.with_metadata(program.metadata() | own))


def _check(model: Message) -> None:
    if not model.get("graph"):
        raise OnnxLoadError("onnx.load: the file has no graph")
    versions = {entry.get("domain", ""): entry.get("version", 0) for entry in model["opset_import"]}
    version = versions.get("", versions.get("ai.onnx", 0))
    if version not in OPSETS:
        raise OnnxLoadError(
            f"onnx.load: opset version must be from {OPSETS[0]} to {OPSETS[-1]}, got {version}"
        )
    graph = model["graph"]
    if model["functions"] or graph["sparse_initializer"]:
        raise OnnxLoadError("onnx.load: functions and sparse tensors are not supported")
    missing = {
        f"{node['domain']}.{node.get('op_type')}" if node.get("domain") else str(node.get("op_type"))
        for node in graph["node"]
        if node.get("domain", "") not in ("", "ai.onnx") or node.get("op_type") not in CALLS
    }
    if missing:
        raise OnnxLoadError(f"onnx.load: operators that are not supported: {', '.join(sorted(missing))}")


# --- tensors ---


def _tensor(entry: Message, folder: Path | None) -> tuple[str, Tensor]:
    name = entry.get("name", "")
    dtype = _DTYPES.get(entry.get("data_type", 0))
    if dtype is None:
        raise OnnxLoadError(
            f"onnx.load: tensor '{name}' is of type {entry.get('data_type')}, which is not supported"
        )
    shape = entry["dims"]
    if any(size < 0 for size in shape):
        raise OnnxLoadError(f"onnx.load: tensor '{name}' has the invalid shape {shape}")
    count = math.prod(shape)
    kind = np.dtype(_NUMPY[dtype])
    if entry.get("data_location", 0) == 1:
        array = _external(name, entry, folder, kind, count)
    elif "raw_data" in entry:
        raw = entry["raw_data"]
        if len(raw) != count * kind.itemsize:
            raise OnnxLoadError(
                f"onnx.load: tensor '{name}' of shape {shape} and dtype {dtype} needs {count * kind.itemsize} bytes, "
                f"got {len(raw)}"
            )
        array = np.frombuffer(bytes(raw), kind)
    else:
        fields = {"float32": "float_data", "float64": "double_data", "int64": "int64_data"}
        numbers = entry[fields.get(dtype, "uint64_data" if dtype in ("uint32", "uint64") else "int32_data")]
        if len(numbers) != count:
            raise OnnxLoadError(
                f"onnx.load: tensor '{name}' of shape {shape} needs {count} elements, got {len(numbers)}"
            )
        if dtype == "float16":
            array = np.array(numbers, np.uint16).view(np.float16)
        else:
            array = np.array(numbers).astype(kind)
    tensor = core.from_numpy(np.ascontiguousarray(array).reshape(shape))
    return name, tensor.view(core.bfloat16) if dtype == "bfloat16" else tensor


def _external(name: str, entry: Message, folder: Path | None, kind: np.dtype[Any], count: int) -> np.ndarray:
    fields = {item.get("key"): item.get("value", "") for item in entry["external_data"]}
    location = Path(str(fields.get("location", "")))
    if folder is None:
        raise OnnxLoadError(f"onnx.load: tensor '{name}' is in another file; load the model by its path")
    if location.is_absolute() or ".." in location.parts or not location.name:
        raise OnnxLoadError(f"onnx.load: tensor '{name}' is in '{location}', outside the model's folder")
    path = folder / location
    try:
        offset = int(fields.get("offset") or 0)
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise OnnxLoadError(f"onnx.load: tensor '{name}' cannot be read: {error}") from None
    if offset < 0 or offset + count * kind.itemsize > size:
        raise OnnxLoadError(f"onnx.load: tensor '{name}' ends beyond the end of '{location}'")
    if not count:
        return np.empty(0, kind)
    return np.memmap(path, kind, "c", offset, (count,))  # "c" (copy on write): writes do not change the file


# --- inputs ---


def _examples(inputs: list[Message], texts: Mapping[str, str]) -> tuple[tuple[Tensor, ...], Any]:
    """Return a tensor of zeros for each input, as arguments of the capture, and the inputs' dynamic sizes."""
    try:
        symbols = {entry["name"]: entry for entry in json.loads(texts.get(METADATA + "symbols", "[]"))}
        known = {
            name: (Dim(name, min=int(entry["min"]), max=int(entry["max"])), int(entry["example"]))
            for name, entry in symbols.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise OnnxLoadError(f"onnx.load: the metadata entry {METADATA}symbols is damaged") from None
    args, shapes = [], []
    for value in inputs:
        name = value.get("name", "")
        tensor = value.get("type", {}).get("tensor_type")
        dtype = _DTYPES.get(tensor.get("elem_type", 0)) if tensor else None
        if dtype is None or "shape" not in tensor:
            raise OnnxLoadError(f"onnx.load: input '{name}' must be a tensor of known dtype and rank")
        sizes, marks = [], {}
        for number, dim in enumerate(tensor["shape"]["dim"]):
            if "dim_value" in dim:
                sizes.append(dim["dim_value"])
                continue
            parts = _SIZE.match(dim.get("dim_param", ""))
            scale, word, offset = parts.groups() if parts else (None, f"{name}_{number}", None)
            word = re.sub(r"\W", "_", word)
            size, example = known.setdefault(word, (Dim(word), _EXAMPLE))
            derived = Derived(size, int(scale or 1), int(offset or 0))
            marks[number] = derived
            sizes.append(example * derived.scale + derived.offset)
        if any(size < 0 for size in sizes):
            raise OnnxLoadError(f"onnx.load: input '{name}' has the invalid shape {sizes}")
        args.append(core.zeros(sizes, dtype=getattr(core, dtype)))
        shapes.append(marks)
    return tuple(args), shapes if any(shapes) else None


class _Interpreter:
    """A function, for the capture, that computes the nodes of an ONNX graph one after the other."""

    def __init__(self, graph: Message, constants: Mapping[str, Tensor], inputs: list[str]) -> None:
        self._nodes = [(node, _attributes(node)) for node in graph["node"]]
        self._outputs = [value.get("name", "") for value in graph["output"]]
        self._inputs = inputs
        self._constants = {
            name: Known(tensor.numpy(), tensor)
            if tensor.dtype == core.int64 and tensor.ndim < 2 and tensor.numel() <= _SMALL
            else tensor
            for name, tensor in constants.items()
        }
        names = [name if name.isidentifier() else f"input_{i}" for i, name in enumerate(inputs)]
        if len(set(names)) == len(names):
            kind = inspect.Parameter.POSITIONAL_ONLY
            self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])

    def __call__(self, *args: Tensor) -> Any:
        values: dict[str, Any] = {**self._constants, **dict(zip(self._inputs, args, strict=True))}
        for node, attributes in self._nodes:
            where = f"node '{node.get('name', '')}' ({node['op_type']})"
            try:
                given = [values[name] if name else None for name in node["input"]]
            except KeyError as error:
                raise NodeError(f"{where} uses {error}, which no earlier node computes") from None
            try:
                made = CALLS[node["op_type"]](attributes, given, where)
            except NodeError:
                raise
            except _ERRORS as error:
                raise NodeError(f"{where}: {type(error).__name__}: {error}") from error
            values.update(zip(node["output"], made if isinstance(made, list) else [made], strict=False))
        try:
            results = [values[name] for name in self._outputs]
        except KeyError as error:
            raise NodeError(f"no node computes the output {error}") from None
        tensors = [item.tensor() if isinstance(item, Known) else item for item in results]
        # An output that is another output is copied, so that the program has as many results as the model has outputs.
        seen: set[int] = set()
        for i, tensor in enumerate(tensors):
            tensors[i] = tensor.clone() if id(tensor) in seen else tensor
            seen.add(id(tensor))
        return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _attributes(node: Message) -> dict[str, Any]:
    fields = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints", 8: "strings"}
    found: dict[str, Any] = {}
    for attribute in node["attribute"]:
        kind = fields.get(attribute.get("type", 0))
        if kind is None or kind not in attribute:
            raise OnnxLoadError(
                f"onnx.load: attribute '{attribute.get('name')}' of a node is of a type that is not supported"
            )
        value = attribute[kind]
        if kind == "s":
            value = bytes(value).decode(errors="replace")
        elif kind == "strings":
            value = [bytes(item).decode(errors="replace") for item in value]
        elif kind == "t":
            tensor = _tensor(value, None)[1]
            value = Known((tensor.float() if tensor.dtype == core.bfloat16 else tensor).numpy(), tensor)
        found[attribute.get("name", "")] = value
    return found
