"""The key `expects`: requirements on an operator's arguments, which generated C++ checks before the body runs.

    expects:
      input: floating (N, C, ...)
      grad: like input
      save_mean: compute of input (C)
      mode: "[0, 2]"
      wanted: 3 numbers

For a tensor, the value consists of dtypes and a shape, in this order. The dtypes or the shape may be omitted. None is always
accepted for an optional tensor.

* Dtypes: a single dtype (`int64`, `int32`, `bool`), `floating`, `wide` (float32 and float64) or `lapack` (the dtypes that
  LAPACK supports). `like other` requires the dtype and shape of the argument `other`; `of other` requires
  only the dtype of `other`. `compute of x` requires the dtype in which kernels compute with `x`: float32 for
  half types, otherwise the dtype of `x`. `real of x` requires the dtype of the real part of `x`, and
  `complex of x` requires complex128 if `x` is float64 or complex128, otherwise complex64.
* Shape: a name denotes the size of a dimension; each later occurrence of the name requires the same size. `*name` denotes
  the sizes of any number of dimensions; each later occurrence requires the same sizes. `...` matches any number of
  dimensions of any sizes, and `_` matches one dimension of any size. The name of an integer argument denotes the argument's
  value, and `*argument` denotes the values of a list. A size may be an arithmetic expression of the names of
  sizes and of integer arguments, such as `2 * S + 1` or `min(m, n)`.

For an integer argument, the value is a list of the smallest and the largest accepted integer, where `...` means no bound.
For a list argument, the value is the required length.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from .schema import Argument, cpp_name

if TYPE_CHECKING:
    from .model import Op

TYPES = {"floating": "Floating", "wide": "Wide", "lapack": "Lapack"}
DTYPES = {"int64": "DType::Int64", "int32": "DType::Int32", "bool": "DType::Bool"}
_DERIVED = {
    "": "{}",
    "compute ": "compute_dtype({})",
    "real ": "real_dtype({})",
    "complex ": "complex_dtype({})",
}
_OF = re.compile(r"(|compute |real |complex )of (\w+)")
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/"}


class ExpectsError(ValueError):
    """Raised for an invalid value of the key `expects`. The loader adds the file and the line to the error message."""


def checks_of(op: Op) -> list[str]:
    """Return the C++ statements that check the arguments of `op`.

    The statements define a variable `expects` of the C++ class Expects (ops/expects.h), and call its methods.
    """
    return _Writer(op).statements()


class _Writer:
    def __init__(self, op: Op) -> None:
        self.op = op
        self.arguments = {a.name: a for a in op.schema.arguments}
        self.sizes: list[str] = []
        self.rests: list[str] = []

    def statements(self) -> list[str]:
        lines = []
        for name, text in self.op.expects:
            argument = self.arguments[name]
            if argument.type.is_tensor:
                lines += self._tensor(argument, text)
            elif argument.type.name == "int":
                lines.append(self._range(argument, text))
            elif match := re.fullmatch(r"(\d+) numbers?", text):
                lines.append(f'expects.length("{name}", {cpp_name(name)}, {match[1]});')
            else:
                raise ExpectsError(f"expects of {name}: {text!r} is not a length, such as '3 numbers'")
        names = [f'"{name}"' for name in self.sizes] or ["nullptr"]
        head = [f"static const char* const names[] = {{{', '.join(names)}}};"]
        return [*head, f'Expects expects("{self.op.base.lstrip("_")}", names, {len(self.sizes)});', *lines]

    def _tensor(self, argument: Argument, text: str) -> list[str]:
        name, own = argument.name, cpp_name(argument.name)
        given = f'"{name}", {own}'
        lines = []
        words, _, shape = text.partition("(")
        words = words.strip()
        kind, _, rest = words.partition(" ")
        if kind in TYPES:
            lines.append(f"expects.types({given}, Expects::Types::{TYPES[kind]});")
            words = rest
        if match := re.fullmatch(r"like (\w+)", words):
            other = self._tensor_named(match[1])
            lines.append(f'expects.like({given}, "{match[1]}", {other});')
        elif match := _OF.fullmatch(words):
            wanted = _DERIVED[match[1]].format(f"{self._tensor_named(match[2])}.dtype()")
            lines.append(f"expects.dtype({given}, {wanted});")
        elif words in DTYPES:
            lines.append(f"expects.dtype({given}, {DTYPES[words]});")
        elif words:
            known = ", ".join([*TYPES, *DTYPES, "like …", "of …"])
            raise ExpectsError(f"expects of {name}: unknown dtypes {words!r}; known are {known}")
        if shape:
            dims = ", ".join(self._dim(item) for item in _items(shape.rstrip().removesuffix(")")))
            lines.append(f'expects.shape({given}, "({shape.strip()}", {{{dims}}});')
        if argument.type.optional:
            return [f"if ({own}.defined()) {{", *(f"    {line}" for line in lines), "}"]
        return [f"expects.given({given});", *lines]

    def _tensor_named(self, name: str) -> str:
        if name not in self.arguments or not self.arguments[name].type.is_tensor:
            raise ExpectsError(f"expects: {name!r} is not the name of a tensor argument")
        return cpp_name(name)

    def _dim(self, item: str) -> str:
        if item == "...":
            return "Dim::any()"
        if item.startswith("*"):
            name = item[1:]
            if name in self.arguments:
                return f"Dim::list({cpp_name(name)})"
            if name not in self.rests:
                self.rests.append(name)
            return f"Dim::rest({self.rests.index(name)})"
        if item.isidentifier() and item != "_" and item not in self.arguments:
            if item not in self.sizes:
                self.sizes.append(item)
            return f"Dim::name({self.sizes.index(item)})"
        return f"Dim::size({self._expression(item)})"

    def _range(self, argument: Argument, text: str) -> str:
        match = re.fullmatch(r"\[(.+), (.+)\]", text)
        if not match:
            raise ExpectsError(f"expects of {argument.name}: {text!r} is not a range, such as '[0, 2]'")
        ends = {"...": ("INT64_MIN", "INT64_MAX")}
        least, most = (ends[t][i] if t in ends else self._expression(t) for i, t in enumerate(match.groups()))
        return f'expects.between("{argument.name}", {cpp_name(argument.name)}, {least}, {most});'

    def _expression(self, text: str) -> str:
        try:
            return self._cpp(ast.parse(text, mode="eval").body)
        except SyntaxError:
            raise ExpectsError(f"expects: {text!r} is not an expression") from None

    def _cpp(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return f"int64_t{{{node.value}}}"
        if isinstance(node, ast.Name):
            if node.id == "_":
                return "int64_t{-1}"
            if node.id in self.arguments:
                return cpp_name(node.id)
            if node.id in self.sizes:
                return f"expects[{self.sizes.index(node.id)}]"
            raise ExpectsError(f"expects: no earlier shape defines the size {node.id!r}")
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return f"({self._cpp(node.left)} {_OPERATORS[type(node.op)]} {self._cpp(node.right)})"
        if isinstance(node, ast.IfExp):
            return f"({self._cpp(node.test)} ? {self._cpp(node.body)} : {self._cpp(node.orelse)})"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            return f"std::{node.func.id}({', '.join(self._cpp(one) for one in node.args)})"
        raise ExpectsError(f"expects: {ast.unparse(node)!r} is not an arithmetic expression of sizes")


def _items(text: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    for part in text.split(","):
        if depth:
            parts[-1] += "," + part
        elif part.strip():
            parts.append(part)
        depth += part.count("(") - part.count(")")
    return [part.strip() for part in parts]
