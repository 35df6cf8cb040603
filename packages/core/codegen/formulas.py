"""Derivative formulas: expressions in Python's syntax, which are parsed, checked and translated to C++.

A formula may call operators. The formula may use the arguments and results of the differentiated operator, and these names:

    grad            gradient of the (first) result            grads[i]    of the i-th result; zeros if it has no gradient
    tangent         in jvp formulas: tangent of the argument  result      the (first) result; results[i]
    x.shape, x.dtype, x.device, x.ndim, x.numel,              of an argument or result; the tensor itself is not saved
    x.memory_format
    xs.shapes                                                 shapes, dtypes and devices of a list of tensors
    needs(x)        whether the gradient of argument x is needed
    arg_grad        the argument named grad, for operators that have such an argument

A formula does not branch on data or write to tensors, so it can be differentiated, used in forward mode and batched.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .model import Op
from .schema import cpp_name

ATTRIBUTES = ("shape", "dtype", "device", "ndim", "numel", "memory_format", "shapes")


class FormulaError(ValueError):
    """Raised for an invalid formula. The loader adds the file and the line to the error message."""


@dataclass(frozen=True)
class Use:
    """A value that a formula reads: an argument or result (attribute "") or one of its attributes, such as "shape"."""

    name: str
    attribute: str = ""


@dataclass(frozen=True)
class Formula:
    text: str
    tree: ast.expr

    @classmethod
    def parse(cls, text: object) -> Formula:
        try:
            return cls(str(text), ast.parse(str(text).strip(), mode="eval").body)
        except SyntaxError as error:
            raise FormulaError(f"{text!r}: {error.msg}") from None

    def uses(self) -> set[Use]:
        """Return the arguments, results and attributes that the formula reads."""
        return set(_uses(self.tree))


def _uses(node: ast.expr) -> Iterator[Use]:
    if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES and isinstance(node.value, ast.Name):
        yield Use(node.value.id, node.attr)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "needs":
        return
    elif isinstance(node, ast.Name):
        yield Use(node.id)
    elif isinstance(node, ast.Call):
        for argument in [*node.args, *[k.value for k in node.keywords]]:
            yield from _uses(argument)
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _uses(child)


_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class CppWriter:
    """Translates formulas to C++ expressions. `name` returns the expression for a value in a formula."""

    def __init__(
        self, ops: dict[str, list[Op]], name: Callable[[Use], str], needs: Callable[[str], str]
    ) -> None:
        self.ops = ops
        self.name = name
        self.needs = needs
        self.headers: set[str] = set()

    def write(self, node: ast.expr) -> str:
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is None:
            raise FormulaError(f"{ast.unparse(node)!r}: {type(node).__name__} is not supported in a formula")
        return method(node)

    def _name(self, node: ast.Name) -> str:
        return self.name(Use(node.id))

    def _attribute(self, node: ast.Attribute) -> str:
        if node.attr not in ATTRIBUTES or not isinstance(node.value, ast.Name):
            raise FormulaError(
                f"{ast.unparse(node)!r}: only {', '.join(ATTRIBUTES)} of an argument can be read"
            )
        return self.name(Use(node.value.id, node.attr))

    def _constant(self, node: ast.Constant) -> str:
        value = node.value
        if value is None:
            return "f::none"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return f"int64_t{{{value}}}"
        if isinstance(value, str):
            return f'std::string_view("{value}")'
        return repr(value)

    def _binop(self, node: ast.BinOp) -> str:
        return f"f::{_BINARY[type(node.op)]}({self.write(node.left)}, {self.write(node.right)})"

    def _unaryop(self, node: ast.UnaryOp) -> str:
        operand = self.write(node.operand)
        return f"!({operand})" if isinstance(node.op, ast.Not) else f"f::neg({operand})"

    def _boolop(self, node: ast.BoolOp) -> str:
        word = " && " if isinstance(node.op, ast.And) else " || "
        return "(" + word.join(self.write(v) for v in node.values) + ")"

    def _compare(self, node: ast.Compare) -> str:
        left, op, right = node.left, node.ops[0], node.comparators[0]
        if isinstance(op, (ast.Is, ast.IsNot)):
            return f"{'!' if isinstance(op, ast.IsNot) else ''}f::is_none({self.write(left)})"
        return f"({self.write(left)} {_COMPARE[type(op)]} {self.write(right)})"

    def _ifexp(self, node: ast.IfExp) -> str:
        return f"({self.write(node.test)} ? {self.write(node.body)} : {self.write(node.orelse)})"

    def _list(self, node: ast.List) -> str:
        return f"f::list({', '.join(map(self.write, node.elts))})"

    def _tuple(self, node: ast.Tuple) -> str:
        return f"std::tuple({', '.join(map(self.write, node.elts))})"

    def _subscript(self, node: ast.Subscript) -> str:
        if not isinstance(node.slice, ast.Constant):
            return f"f::at({self.write(node.value)}, {self.write(node.slice)})"
        if isinstance(node.value, ast.Name) and node.value.id in ("grads", "results"):
            return f"f::at({self.write(node.value)}, {node.slice.value!r})"
        if not isinstance(node.value, ast.Call):
            return f"f::at({self.write(node.value)}, {node.slice.value!r})"
        return f"std::get<{node.slice.value!r}>({self.write(node.value)})"

    def _call(self, node: ast.Call) -> str:
        if not isinstance(node.func, ast.Name):
            raise FormulaError(f"{ast.unparse(node)!r}: call operators by name, not as methods")
        name = node.func.id
        if name == "needs":
            return self.needs(ast.unparse(node.args[0]))
        if name not in self.ops:
            if name not in HELPERS:
                raise FormulaError(f"{name!r} is neither an operator nor one of {', '.join(sorted(HELPERS))}")
            return f"f::{name}({', '.join(map(self.write, node.args))})"
        self.headers.add(self.ops[name][0].header)
        return f"ops::{name}({', '.join(self._arguments(name, node))})"

    def _arguments(self, name: str, node: ast.Call) -> list[str]:
        given = [self.write(a) for a in node.args]
        if not node.keywords:
            return given
        from .schema import cpp_default

        for op in self.ops[name]:
            names = [a.name for a in op.schema.arguments]
            if all(k.arg in names for k in node.keywords):
                break
        else:
            raise FormulaError(f"{ast.unparse(node)!r}: no overload of {name} has these keywords")
        keywords = {k.arg: self.write(k.value) for k in node.keywords}
        for a in op.schema.arguments[len(given) :]:
            given.append(keywords[a.name] if a.name in keywords else f"{a.type.cpp}({cpp_default(a)})")
        return given


# Functions that formulas may call and that are not operators: rushlight/autograd/formula.h, and the tape of the conformance
# kit.
HELPERS = {
    "fit": "sum over broadcast dimensions and cast: fit(grad, x.shape, x.dtype)",
    "restore": "insert the reduced dimensions of a result again: restore(grad, input.shape, dim, keepdim)",
    "reduced": "number of elements that a reduction joins: reduced(input.shape, dim)",
    "dims": "an optional dimension as an optional list",
    "len": "number of elements of a list",
    "prod": "product of a list of integers",
    "wrap": "a dimension as a non-negative number: wrap(dim, x.ndim)",
    "inverse_order": "inverse of a permutation",
    "split_like": "split into parts of the given shapes: split_like(grad, tensors.shapes, dim)",
    "rounded": "a number rounded to the dtype of a tensor: rounded(number, t)",
    "scaled": "t times an optional weight: scaled(t, weight)",
    "channelwise": "t times an optional weight for each channel: channelwise(t, weight)",
    "in_format": "t in a memory format: in_format(grad, input.memory_format)",
}


def saved_name(use: Use) -> str:
    """Return the name of the field of the autograd node in which a value is saved for the backward pass."""
    return cpp_name(use.name) + ("_" + use.attribute if use.attribute else "")
