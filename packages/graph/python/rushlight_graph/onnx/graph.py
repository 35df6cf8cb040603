"""The graph of an exported program as Python objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from rushlight_graph._C import Program


class UnsupportedError(Exception):
    """Raised for a call that cannot be exported; the message gives the reason."""


class Size:
    """An integer that can differ between runs. `expression` is an index in `DecodedGraph.expressions`.

    A Size is not an int, so code that needs a fixed size raises an error. Two Sizes are equal if they have the same
    expression. A Size is never equal to an int.
    """

    __slots__ = ("expression",)

    def __init__(self, expression: int) -> None:
        self.expression: int = expression

    def _unsupported(self, *_: Any) -> NoReturn:
        raise UnsupportedError("an argument depends on a dynamic size, which is not supported")

    __index__: Callable[..., NoReturn] = _unsupported
    __int__: Callable[..., NoReturn] = _unsupported
    __float__: Callable[..., NoReturn] = _unsupported
    __neg__: Callable[..., NoReturn] = _unsupported
    __bool__: Callable[..., NoReturn] = _unsupported
    __add__: Callable[..., NoReturn] = _unsupported
    __radd__: Callable[..., NoReturn] = _unsupported
    __sub__: Callable[..., NoReturn] = _unsupported
    __rsub__: Callable[..., NoReturn] = _unsupported
    __mul__: Callable[..., NoReturn] = _unsupported
    __rmul__: Callable[..., NoReturn] = _unsupported
    __floordiv__: Callable[..., NoReturn] = _unsupported
    __rfloordiv__: Callable[..., NoReturn] = _unsupported
    __mod__: Callable[..., NoReturn] = _unsupported
    __rmod__: Callable[..., NoReturn] = _unsupported
    __truediv__: Callable[..., NoReturn] = _unsupported
    __rtruediv__: Callable[..., NoReturn] = _unsupported
    __lt__: Callable[..., NoReturn] = _unsupported
    __le__: Callable[..., NoReturn] = _unsupported
    __gt__: Callable[..., NoReturn] = _unsupported
    __ge__: Callable[..., NoReturn] = _unsupported

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and other.expression == self.expression

    def __hash__(self) -> int:
        return hash(self.expression)

    def __repr__(self) -> str:
        return f"Size({self.expression})"


class DTypeName(str):
    """A dtype in the arguments of a call, represented by its name."""

    __slots__ = ()


class Use(NamedTuple):
    """A tensor in the arguments of a call, represented by its index among the values."""

    value: int


@dataclass(frozen=True)
class Value:
    """The properties of a tensor; `memory` is the index of the first value that uses the same memory."""

    dtype: str
    sizes: tuple[int | Size, ...]
    memory: int

    @property
    def fixed(self) -> bool:
        """Whether no size changes."""
        return not any(isinstance(size, Size) for size in self.sizes)


@dataclass(frozen=True)
class Node:
    """A node of the graph: an operator call, or control flow."""

    op: str
    arguments: list[Any]
    results: list[int | list[int] | None]
    writes: list[int]
    random: bool
    line: str
    module: str
    control: str = ""  # cond, while_loop or scan for control flow, otherwise empty
    blocks: tuple[Block, ...] = ()

    def uses(self) -> list[int]:
        """Return the indices of the values that the node reads."""
        found = []
        for argument in self.arguments:
            items = argument if isinstance(argument, list) else [argument]
            found += [item.value for item in items if isinstance(item, Use)]
        return found

    def defines(self) -> list[int]:
        """Return the indices of the values that the node computes."""
        found: list[int] = []
        for result in self.results:
            found += result if isinstance(result, list) else [] if result is None else [result]
        return found


@dataclass(frozen=True)
class Block:
    """A branch of a conditional, or the condition or body of a loop."""

    inputs: list[int]
    nodes: list[Node]
    outputs: list[int]


@dataclass
class Symbol:
    """A dynamic size: its name, range, value in the example inputs, and occurrences (input, dimension, scale, offset)."""

    name: str
    min: int
    max: int
    example: int
    occurrences: list[tuple[int, int, int, int]]


@dataclass
class DecodedGraph:
    """The graph of a program, read from its JSON form."""

    values: list[Value]
    inputs: list[tuple[str, int]]
    constants: list[tuple[str, int, str, bool]]  # name, value, kind, whether it is written
    nodes: list[Node]
    outputs: list[int]
    symbols: list[Symbol] = field(default_factory=list)
    expressions: list[dict[str, Any]] = field(default_factory=list)

    def text(self, size: int | Size) -> str:
        """Return a size as text, such as "2*batch+1"."""
        return _text(self, size.expression)[0] if isinstance(size, Size) else str(size)


_BINDING = {"+": 1, "-": 1, "*": 2, "//": 2}


def _text(graph: DecodedGraph, expression: int) -> tuple[str, int]:
    ((kind, content),) = graph.expressions[expression].items()
    if kind in ("number", "symbol"):
        return (str(content) if kind == "number" else graph.symbols[content].name), 3
    (left, binds_left), (right, binds_right) = (_text(graph, part) for part in content)
    binding = _BINDING[kind]
    left = f"({left})" if binds_left < binding else left
    right = f"({right})" if binds_right < binding or (binds_right == binding and kind in "-//") else right
    return f"{left}{kind}{right}", binding


def read(program: Program) -> DecodedGraph:
    """Return the graph of a program."""
    data = json.loads(program.graph())
    texts = data["texts"]
    operators = [name for name, _ in data["operators"]]
    values = [
        Value(value["dtype"], tuple(_integer(size) for size in value["sizes"]), value.get("memory", number))
        for number, value in enumerate(data["values"])
    ]

    def nodes_of(items: list[dict[str, Any]]) -> list[Node]:
        return [
            Node(
                operators[node["op"]] if "op" in node else node["control"],
                [_argument(argument) for argument in node["arguments"]],
                node["results"],
                node.get("writes", []),
                node.get("random", False),
                texts[node.get("line", 0)],
                texts[node.get("module", 0)],
                node.get("control", ""),
                tuple(
                    Block(block["inputs"], nodes_of(block["nodes"]), block["outputs"])
                    for block in node.get("blocks", ())
                ),
            )
            for node in items
        ]

    nodes = nodes_of(data["nodes"])
    symbols = [
        Symbol(
            symbol["name"],
            symbol["least"],
            symbol["most"],
            symbol["example"],
            [
                (one["input"], one["dim"], one.get("scale", 1), one.get("offset", 0))
                for one in symbol["places"]
            ],
        )
        for symbol in data["symbols"]
    ]
    constants = [(c["name"], c["value"], c["kind"], c.get("written", False)) for c in data["constants"]]
    inputs = [(given["name"], given["value"]) for given in data["inputs"]]
    return DecodedGraph(values, inputs, constants, nodes, data["outputs"], symbols, data["expressions"])


def _integer(item: Any) -> int | Size:
    return Size(item["size"]) if isinstance(item, dict) else item


def _argument(item: Any) -> Any:
    if isinstance(item, list):
        return [_integer(part) for part in item]
    if not isinstance(item, dict):
        return item
    ((kind, content),) = item.items()
    if kind == "value":
        return Use(content)
    if kind == "values":
        return [None if number is None else Use(number) for number in content]
    if kind == "size":
        return Size(content)
    if kind == "float":
        return float(content)
    if kind == "complex":
        return complex(*(_argument(part) for part in content))
    return DTypeName(content) if kind == "dtype" else content
