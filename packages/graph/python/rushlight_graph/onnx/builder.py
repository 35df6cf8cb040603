"""Build the nodes of an ONNX graph: choose names, add constants and casts, and use only what the opset supports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_graph.onnx.graph import DecodedGraph, Size, UnsupportedError, Value

#: Names of dtypes, and the numbers of their types in ONNX.
ELEMENT_TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
}
FLOATING = ("float32", "float64", "float16", "bfloat16")

# Operators that were added or changed after version 17.
_ADDED = {"BitwiseAnd": 18, "BitwiseOr": 18, "BitwiseXor": 18, "BitwiseNot": 18, "Gelu": 20}
_TRUTHS = {
    *("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "IsNaN", "IsInf", "And", "Or", "Not", "Xor"),
}  # fmt: skip
_LOGICAL = {"And", "Or", "Not", "Xor"}
_COUNTS = {"Shape", "Size", "NonZero", "ArgMax", "ArgMin"}
_ROUNDING = {"Floor", "Ceil", "Round"}
# Operators that do not support bools. They are computed with integers in place of bools.
_NUMERIC = {
    *("Add", "Sub", "Mul", "Div", "Max", "Min", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Abs", "Neg", "Sign"),
    *("Pow", "Mod", "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "CumSum", "MatMul", "Clip", "Relu", "ArgMax"),
    *("ArgMin", "TopK", "Trilu", "ScatterElements", "ScatterND", "Pad", "Einsum"),
}  # fmt: skip
_MOVE_ONLY = {"ScatterElements", "ScatterND"}  # these support bools if there is no reduction


@dataclass(frozen=True)
class Val:
    """A value of the ONNX graph."""

    name: str
    dtype: str


@dataclass
class Emitted:
    """A node of the ONNX graph."""

    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    where: str  # description of the call for which it was emitted


@dataclass
class ValueType:
    """The type of an input or output. Dynamic sizes are represented by names."""

    name: str
    dtype: str
    sizes: list[int | str]


@dataclass
class Subgraph:
    """A subgraph in the attributes of a node. The nodes of a subgraph may use values of the enclosing graph."""

    nodes: list[Emitted]
    inputs: list[ValueType]
    outputs: list[ValueType]


def nested(nodes: Sequence[Emitted]) -> Iterator[Emitted]:
    """Yield the nodes, and the nodes of their subgraphs."""
    for node in nodes:
        yield node
        for value in node.attributes.values():
            if isinstance(value, Subgraph):
                yield from nested(value.nodes)


class Builder:
    """Collects the nodes and constants of an ONNX graph."""

    def __init__(self, graph: DecodedGraph, opset: int) -> None:
        self.graph = graph
        self.opset = opset
        self.nodes: list[Emitted] = []
        self.initializers: dict[str, Tensor] = {}
        self.input_names: list[str] = []
        self.where = ""
        self._taken: set[str] = set()
        self._numbers = 0
        self._known: dict[Any, Val] = {}

    # --- names and constants ---

    def reserve(self, name: str) -> str:
        """Reserve a name and return it; if it is in use, reserve and return a similar name."""
        wanted, number = name, 1
        while wanted in self._taken or not wanted:
            number += 1
            wanted = f"{name}_{number}"
        self._taken.add(wanted)
        return wanted

    def fresh(self, word: str) -> str:
        """Return an unused name for a result."""
        while True:
            name = f"{word}_{self._numbers}"
            self._numbers += 1
            if name not in self._taken:
                self._taken.add(name)
                return name

    def constant(self, tensor: Tensor, name: str | None = None) -> Val:
        """Add a constant tensor to the ONNX model, and return the value that refers to it."""
        dtype = dtype_name(tensor.dtype)
        if dtype not in ELEMENT_TYPES:
            raise UnsupportedError(f"a constant of dtype {dtype} is not supported")
        given = self.fresh("constant") if name is None else self.reserve(name)
        self.initializers[given] = tensor
        return Val(given, dtype)

    def scalar(self, value: float | Val | Size, dtype: str) -> Val:
        """Return a number as a tensor without dimensions."""
        if isinstance(value, Val):
            return self.cast(value, dtype)
        if isinstance(value, Size):
            return self.cast(self.op("Reshape", self.ints([value]), self.ints([])), dtype)
        if dtype not in FLOATING and not isinstance(value, bool):
            if isinstance(value, float) and (not math.isfinite(value) or value != int(value)):
                raise UnsupportedError(f"the number {value} is not supported with dtype {dtype}")
            value = int(value)
            limits = None if dtype == "bool" else core.iinfo(getattr(core, dtype))
            if limits and not limits.min <= value <= limits.max:
                raise UnsupportedError(f"the number {value} is not supported with dtype {dtype}")
        key = ("scalar", repr(value), dtype)
        if key not in self._known:
            self._known[key] = self.constant(core.tensor(value, dtype=getattr(core, dtype)))
        return self._known[key]

    def ints(self, numbers: Sequence[int | Size]) -> Val:
        """Return integers as a tensor with one dimension."""
        key = ("ints", tuple(numbers))
        if key in self._known:
            return self._known[key]
        parts: list[Val] = []
        fixed: list[int] = []

        def close() -> None:
            if fixed:
                parts.append(self.ints(list(fixed)))
                fixed.clear()

        if not any(isinstance(number, Size) for number in numbers):
            made = self.constant(core.tensor(list(numbers), dtype=core.int64))
        else:
            for number in numbers:
                if isinstance(number, Size):
                    close()
                    parts.append(self._expression(number.expression))
                else:
                    fixed.append(number)
            close()
            made = parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)
        self._known[key] = made
        return made

    def _expression(self, number: int) -> Val:
        key = ("expression", number)
        if key in self._known:
            return self._known[key]
        ((kind, content),) = self.graph.expressions[number].items()
        if kind == "number":
            made = self.ints([content])
        elif kind == "symbol":
            # Prefer an input dimension that equals the size without a scale.
            occurrences = self.graph.symbols[content].occurrences
            given, dim, scale, offset = min(occurrences, key=lambda o: (o[2], abs(o[3])))
            made = self.op("Shape", Val(self.input_names[given], "float32"), start=dim, end=dim + 1)
            if offset:
                made = self.op("Sub", made, self.ints([offset]))
            if scale != 1:
                made = self.op("Div", made, self.ints([scale]))
        else:
            left, right = (self._expression(part) for part in content)
            if kind == "//":  # Div rounds towards zero
                left = self.op("Sub", left, self.op("Mod", left, right))
            made = self.op({"+": "Add", "-": "Sub", "*": "Mul", "//": "Div"}[kind], left, right)
        self._known[key] = made
        return made

    # --- nodes ---

    def type_of(self, name: str, value: int) -> ValueType:
        """Return the type of the program's value with the index `value`; the model calls it `name`."""
        info = self.graph.values[value]
        sizes = [size if isinstance(size, int) else self.graph.text(size) for size in info.sizes]
        return ValueType(name, info.dtype, sizes)

    @contextmanager
    def subgraph(self) -> Iterator[list[Emitted]]:
        """Return a context manager that adds the nodes of its block to a new list instead of to the graph.

        Constants that are cached inside the block are not reused after the block."""
        nodes, known = self.nodes, self._known
        self.nodes, self._known = [], dict(known)
        try:
            yield self.nodes
        finally:
            self.nodes, self._known = nodes, known

    def op(self, name: str, *inputs: Val | None, dtype: str | None = None, **attributes: Any) -> Val:
        """Add a node of the operator `name` with one result, and return the result.

        If `dtype` is None, the result of a comparison is bool, the result of an operator such as Shape is
        int64, and any other result has the dtype of the first input."""
        if name in _ROUNDING and inputs[0] and inputs[0].dtype not in FLOATING:
            return inputs[0]
        given: list[Val | None] = list(inputs)
        first = given[1] if name == "Where" else given[0]
        assert first is not None
        wanted = dtype or first.dtype
        if name == "Where" and wanted == "bool":  # runtimes do not support it
            chosen = [item and self.cast(item, "uint8") for item in given[1:]]
            return self.cast(self.op("Where", given[0], *chosen), "bool")
        if name in _LOGICAL:
            given = [item and self.cast(item, "bool") for item in given]
        elif first.dtype == "bool" and name in _NUMERIC and not self._moves(name, attributes):
            given = [item and (self.cast(item, "int32") if item.dtype == "bool" else item) for item in given]
            made = self.op(name, *given, **attributes)
            return made if name in _TRUTHS | _COUNTS else self.cast(made, wanted)
        if name in _TRUTHS:
            wanted = "bool"
        elif name in _COUNTS:
            wanted = "int64"
        return self.ops(name, *given, dtypes=[wanted], **attributes)[0]

    @staticmethod
    def _moves(name: str, attributes: dict[str, Any]) -> bool:
        return name in _MOVE_ONLY and attributes.get("reduction", "none") == "none"

    def ops(self, name: str, *inputs: Val | None, dtypes: Sequence[str], **attributes: Any) -> list[Val]:
        """Add a node and return its results, one for each dtype in the list."""
        if self.opset < _ADDED.get(name, 0):
            raise UnsupportedError(f"needs {name}, which exists from opset_version {_ADDED[name]} on")
        names = [item.name if item else "" for item in inputs]
        while names and not names[-1]:
            names.pop()
        outputs = [self.fresh(name.lower()) for _ in dtypes]
        kept = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(Emitted(name, names, outputs, kept, self.where))
        return [Val(output, dtype) for output, dtype in zip(outputs, dtypes, strict=True)]

    def cast(self, value: Val, dtype: str) -> Val:
        """Return the value in another dtype."""
        if value.dtype == dtype:
            return value
        if dtype not in ELEMENT_TYPES:
            raise UnsupportedError(f"dtype {dtype} is not supported by ONNX's operators")
        return self.op("Cast", value, dtype=dtype, to=ELEMENT_TYPES[dtype])

    def reshape(self, value: Val, sizes: Sequence[int | Size]) -> Val:
        """Return the same elements in another shape."""
        moving = [i for i, size in enumerate(sizes) if isinstance(size, Size)]
        wanted = list(sizes)
        if len(moving) == 1 and 0 not in [size for size in sizes if not isinstance(size, Size)]:
            wanted[moving[0]] = -1
        allow = 1 if any(size == 0 for size in wanted if not isinstance(size, Size)) else None
        return self.op("Reshape", value, self.ints(wanted), allowzero=allow)

    def flat(self, value: Val) -> Val:
        """Return the value as a tensor with one dimension."""
        return self.op("Reshape", value, self.ints([-1]))

    def transpose(self, value: Val, order: Sequence[int]) -> Val:
        """Permute the dimensions so that dimension order[i] is at position i."""
        if list(order) == list(range(len(order))):
            return value
        return self.op("Transpose", value, perm=list(order))

    def expand(self, value: Val, sizes: Sequence[int | Size]) -> Val:
        """Expand dimensions of size one, and add new dimensions in front."""
        if 0 in [size for size in sizes if not isinstance(size, Size)]:
            return self.empty(sizes, value.dtype)
        return self.op("Expand", value, self.ints(sizes))

    def empty(self, sizes: Sequence[int | Size], dtype: str) -> Val:
        """Return a tensor without elements."""
        zero = core.zeros(1, dtype=getattr(core, dtype))
        return self.op("ConstantOfShape", self.ints(sizes), dtype=dtype, value=zero)

    def unsqueeze(self, value: Val, dims: Sequence[int]) -> Val:
        """Insert dimensions of size 1, which have the positions `dims` in the result."""
        return self.op("Unsqueeze", value, self.ints(dims)) if dims else value

    def squeeze(self, value: Val, dims: Sequence[int]) -> Val:
        """Remove the dimensions `dims`, which have size 1."""
        return self.op("Squeeze", value, self.ints(dims)) if dims else value

    def slice(self, value: Val, dim: int, start: int | Size, end: int | Size, step: int = 1) -> Val:
        """Return a slice along `dim`: the elements at the indices start, start + step and so on, before `end`."""
        return self.op(
            "Slice", value, self.ints([start]), self.ints([end]), self.ints([dim]), self.ints([step])
        )

    def reduce(self, name: str, value: Val, dims: Sequence[int] | None, keep: bool) -> Val:
        """Return a reduction over the dimensions `dims`, or over all dimensions if `dims` is None."""
        if dims is not None and not dims:
            return value
        if name == "ReduceSum" or self.opset >= 18:
            axes = None if dims is None else self.ints(dims)
            return self.op(name, value, axes, keepdims=int(keep))
        return self.op(name, value, keepdims=int(keep), axes=None if dims is None else list(dims))


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype, such as "float32"."""
    return str(dtype).rpartition(".")[2]


def fixed_sizes(value: Value) -> list[int]:
    """Return the sizes of a value as integers. Raise UnsupportedError if a size is dynamic."""
    if not value.fixed:
        raise UnsupportedError("this call needs a tensor of fixed shape, but the shape is dynamic")
    return [int(size) for size in value.sizes]
