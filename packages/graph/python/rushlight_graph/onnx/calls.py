"""The class of the calls that are exported to ONNX, and the table of the Python functions that export operators."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import rushlight_core as core
from rushlight_graph.onnx._operators import RULES, Rule
from rushlight_graph.onnx.builder import Builder, Val, dtype_name
from rushlight_graph.onnx.graph import Node, Size, UnsupportedError, Use, Value

Exported = Val | Sequence[Val | Sequence[Val]]
Function = Callable[[Builder, "Call"], Exported]

#: The functions of operators whose YAML entry has `onnx: function`.
FUNCTIONS: dict[str, Function] = {}
# Arguments that do not change the values of a result in ONNX. Some of them change, for example, its memory or the speed.
_NO_MEANING = {
    *("memory_format", "device", "requires_grad", "non_blocking", "copy", "cudnn_enabled", "cudnn_enable", "sparse_grad"),
    *("stable", "implicit", "generator", "sparse", "scale_grad_by_freq", "padding_idx"),
}  # fmt: skip


def exports(*names: str) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as the exporter of the operators `names`."""

    def register(function: Function) -> Function:
        for name in names:
            if name in FUNCTIONS or RULES[name].onnx != "function":
                raise ValueError(f"onnx: {name} has more than one rule for its export")
            FUNCTIONS[name] = function
        return function

    return register


class Call:
    """A call of an operator that is exported, with its arguments.

    `check_asked` raises an error if an argument that the exporter did not read differs from its default.
    """

    def __init__(
        self,
        builder: Builder,
        name: str,
        node: Node,
        tensors: dict[int, Val],
        values: Sequence[Value],
    ) -> None:
        self.name = name
        self.rule: Rule = RULES[name]
        self._builder = builder
        self._arguments = dict(zip(self.rule.arguments, node.arguments, strict=False))
        self._tensors = tensors
        self._values = values
        self._asked: set[str] = set()
        self.results: list[Value] = [values[number] for number in node.defines()]

    def __getitem__(self, name: str) -> Any:
        """Return an argument; for a tensor argument, return a `Use`, which refers to a value of the graph."""
        self._asked.add(name)
        return self._arguments[name]

    @property
    def result(self) -> Value:
        """The dtype and sizes of the first result."""
        return self.results[0]

    def has(self, name: str) -> bool:
        """Return whether an argument is given and is not None."""
        return self[name] is not None

    def is_tensor(self, name: str) -> bool:
        """Return whether an argument of the type TensorOrScalar is a tensor."""
        return isinstance(self[name], Use)

    def value(self, name: str) -> Value:
        """Return the dtype and sizes of a tensor argument."""
        return self._values[self[name].value]

    def values(self, name: str) -> list[Value | None]:
        """Return the dtype and sizes of each tensor in a list argument, with None for a missing tensor."""
        return [None if use is None else self._values[use.value] for use in self[name]]

    def rank(self, name: str) -> int:
        """Return the number of dimensions of a tensor argument."""
        return len(self.value(name).sizes)

    def dim(self, name: str, of: str = "input") -> int:
        """Return the argument `name`, a dimension of the tensor `of`, as a nonnegative index."""
        dim = self[name]
        return dim % self.rank(of) if self.rank(of) else 0

    def dims(self, name: str, of: str = "input") -> list[int]:
        """Return the argument `name`, a list of dimensions of the tensor `of`, as nonnegative indices."""
        return [dim % self.rank(of) if self.rank(of) else 0 for dim in self[name]]

    def tensor(self, name: str) -> Val:
        """Return a tensor argument as an ONNX value; convert an operand to the dtype in which the operator computes."""
        given = self[name]
        if name in self.rule.operands:
            dtype = self.operand_dtype()
            return self._builder.scalar(
                self._tensors[given.value] if isinstance(given, Use) else given, dtype
            )
        return self._tensors[given.value]

    def optional(self, name: str) -> Val | None:
        """Return a tensor argument as an ONNX value, or None if it is not given."""
        return self.tensor(name) if self.has(name) else None

    def tensors(self, name: str) -> list[Val]:
        """Return the tensors in a list argument as ONNX values."""
        return [self._tensors[use.value] for use in self[name]]

    def optionals(self, name: str) -> list[Val | None]:
        """Return the tensors in a list argument as ONNX values, with None for a missing tensor."""
        return [None if use is None else self._tensors[use.value] for use in self[name]]

    def operand_dtype(self) -> str:
        """Return the dtype in which an element-wise operator computes."""
        if self.rule.result == "bool":
            joint: Any = None
            given = [self._arguments[name] for name in self.rule.operands]
            examples = [self._example(item) for item in given]
            joint = examples[0]
            for other in examples[1:]:
                joint = core.result_type(joint, other)
                joint = core.empty((1,), dtype=joint)
            return dtype_name(joint.dtype) if isinstance(joint, core.Tensor) else self.result.dtype
        return self.result.dtype

    def _example(self, item: Any) -> Any:
        if not isinstance(item, Use):
            return item
        value = self._values[item.value]
        return core.empty((1,) * len(value.sizes), dtype=getattr(core, value.dtype))

    def check_asked(self) -> None:
        """Raise UnsupportedError if an argument that the exporter did not read differs from its default."""
        for name, given in self._arguments.items():
            if name in self._asked or name in _NO_MEANING:
                continue
            if name not in self.rule.defaults or given != self.rule.defaults[name]:
                raise UnsupportedError(f"the argument {name}={given!r} is not supported")

    def evaluate(self, expression: str) -> Val:
        """Add the nodes that compute an expression of the arguments, and return its value.

        The expressions are described in rushlight_core.codegen.onnx_rules."""
        return self._input(_parsed(expression))

    def _input(self, node: ast.expr) -> Val:
        if isinstance(node, ast.Name) and node.id != "inf":
            given = self[node.id]
            if isinstance(given, Use) or node.id in self.rule.operands:
                return self.tensor(node.id)
            return self._builder.scalar(given, self._number_dtype())
        if isinstance(node, ast.Call):
            return self._node(node)
        return self._builder.scalar(self._attribute(node), self._number_dtype())

    def _number_dtype(self) -> str:
        return self.operand_dtype() if self.rule.operands else self.result.dtype

    def _node(self, node: ast.Call) -> Val:
        assert isinstance(node.func, ast.Name)
        operator = node.func.id
        inputs = [(item, self._input(item)) for item in node.args]
        if operator == "Mul":  # factors such as alpha are usually 1
            for (item, _), (_, other) in (inputs, inputs[::-1]):
                if isinstance(item, ast.Name) and self._is_one(item.id):
                    return other
        attributes = {item.arg: self._attribute(item.value) for item in node.keywords if item.arg}
        return self._builder.op(operator, *(value for _, value in inputs), **attributes)

    def _is_one(self, name: str) -> bool:
        given = self._arguments.get(name)
        return isinstance(given, (int, float)) and not isinstance(given, bool) and given == 1

    def _attribute(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp):
            return -self._attribute(node.operand)
        assert isinstance(node, ast.Name)
        if node.id == "inf":
            return math.inf
        value = self[node.id]
        if isinstance(value, bool):
            return int(value)
        floats = ("alpha", "negative_slope", "lambd")  # these Scalars may be passed as integers
        return float(value) if node.id in floats else value


@cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def is_size(item: Any) -> bool:
    """Return whether `item` is a Size: an integer that is not fixed when the program is exported."""
    return isinstance(item, Size)
