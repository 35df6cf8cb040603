"""Evaluate the formulas of derivatives: expressions in Python's syntax over operators and a few helpers.

`rushlight_core.codegen.formulas` defines which expressions are allowed, and translates the formulas to C++.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.codegen.formulas import ATTRIBUTES
from rushlight_core.codegen.model import Op


def _format(t: Tensor) -> str:
    """Return the name of the channels-last format if a tensor has this format and is not row-major, else "contiguous"."""
    formats = {4: "channels_last", 5: "channels_last_3d"}
    wanted = formats.get(t.dim())
    if wanted is None or t.is_contiguous() or not t.is_contiguous(memory_format=wanted):
        return "contiguous"
    return wanted


class Shape(NamedTuple):
    """A placeholder for a tensor, for formulas that use only the tensor's shape, dtype and device."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any
    memory_format: str = "contiguous"

    @classmethod
    def of(cls, value: Any) -> Shape:
        if not isinstance(value, Tensor):
            return cls((), None, None)
        return cls(tuple(value.shape), value.dtype, value.device, _format(value))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


class Operators:
    """Core's operators, hidden ones included, by the names under which formulas call them."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self._overloads: dict[str, list[Op]] = {}
        for op in ops:
            self._overloads.setdefault(op.base, []).append(op)

    def __contains__(self, name: str) -> bool:
        return name in self._overloads

    def call(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call the first overload that accepts the arguments. As in C++, all arguments may be positional."""
        for op in self._overloads[name]:
            arguments = op.schema.arguments
            names = [a.name for a in arguments]
            if len(args) > len(names) or not kwargs.keys() <= set(names[len(args) :]):
                continue
            given = dict(zip(names, args, strict=False)) | kwargs
            if any(a.required and a.name not in given for a in arguments):
                continue
            values = [given[a.name] if a.name in given else _default(a) for a in arguments]
            try:
                return core._C._call_boxed(op.name, *values)
            except TypeError as error:
                if "must be" not in str(error):
                    raise
        raise TypeError(f"{name}: no overload takes {args} and {kwargs}")


def _default(argument: Any) -> Any:
    value = argument.default
    if argument.type.name.startswith("int[]") and isinstance(value, int):
        return (value,) * max(argument.fill, 1)
    return value


class Evaluator(ast.NodeVisitor):
    """Evaluates one formula.

    `names` maps names in the formula to arguments and results. For a tensor of which the formula uses only
    the shape, the dtype or the device, `shapes` contains these attributes instead.
    """

    operators: Operators
    names: dict[str, Any]
    shapes: dict[str, Any]
    needs: Callable[[str], bool]

    def __init__(
        self,
        operators: Operators,
        names: dict[str, Any],
        shapes: dict[str, Any],
        needs: Callable[[str], bool],
    ) -> None:
        self.operators, self.names, self.shapes, self.needs = operators, names, shapes, needs

    def generic_visit(self, node: ast.AST) -> Any:
        raise ValueError(f"{ast.unparse(node)!r}: {type(node).__name__} is not supported in a formula")

    def visit_Name(self, node: ast.Name) -> Any:
        return self.names[node.id]

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        assert isinstance(node.value, ast.Name)
        assert node.attr in ATTRIBUTES
        name = node.value.id
        if node.attr == "shapes":
            return self.shapes[name]
        kept = self.shapes[name] if name in self.shapes else Shape.of(self.names[name])
        return getattr(kept, node.attr)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return _BINARY[type(node.op)](self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        return [-v for v in value] if isinstance(value, (tuple, list)) else -value

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        join = all if isinstance(node.op, ast.And) else any
        return join(self.visit(value) for value in node.values)

    def visit_Compare(self, node: ast.Compare) -> Any:
        return _COMPARE[type(node.ops[0])](self.visit(node.left), self.visit(node.comparators[0]))

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self.visit(node.body if self.visit(node.test) else node.orelse)

    def visit_List(self, node: ast.List) -> Any:
        return [self.visit(value) for value in node.elts]

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.visit(value) for value in node.elts)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return self.visit(node.value)[self.visit(node.slice)]

    def visit_Call(self, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name == "needs":
            return self.needs(ast.unparse(node.args[0]))
        args = [self.visit(value) for value in node.args]
        if name in self.operators and not (name == "prod" and not isinstance(args[0], Tensor)):
            return self.operators.call(name, args, {str(k.arg): self.visit(k.value) for k in node.keywords})
        return _HELPERS[name](*args)


# --- helpers: functions of formulas that are not operators ---


def fit(grad: Tensor | None, shape: Sequence[int], dtype: Any, device: Any = None) -> Tensor | None:
    """Sum a gradient over the dimensions along which an argument of shape `shape` was broadcast.

    Convert the sum to `dtype` and `device`, the dtype and the device of the argument."""
    if grad is None or dtype is None:
        return grad
    lead = grad.dim() - len(shape)
    dims = [d for d in range(grad.dim()) if d < lead or (shape[d - lead] == 1 and grad.shape[d] != 1)]
    if dims:
        grad = grad.sum(dims, True)
    if lead > 0:
        grad = grad.view(shape)
    return grad.to(device=device or grad.device, dtype=dtype)


def _restore(reduced: Tensor, shape: Sequence[int], dim: Any, keepdim: bool) -> Tensor:
    if not shape:
        return reduced
    if not keepdim or reduced.dim() != len(shape):
        gone = {d % len(shape) for d in _list(dim)} or set(range(len(shape)))
        reduced = reduced.reshape([1 if d in gone else n for d, n in enumerate(shape)])
    return reduced.expand(shape)


def _list(dim: Any) -> list[int]:
    return [] if dim is None else [dim] if isinstance(dim, int) else list(dim)


def _reduced(shape: Sequence[int], dim: Any) -> int:
    dims = _list(dim) or range(len(shape))
    return math.prod(shape[d] for d in dims) if shape else 1


def _inverse(permutation: Sequence[int]) -> list[int]:
    dims = [d % len(permutation) for d in permutation]
    return [dims.index(d) for d in range(len(dims))]


def _split_like(grad: Tensor, shapes: Sequence[Shape], dim: int) -> list[Tensor]:
    pieces, at, d = [], 0, dim % grad.dim()
    for kept in shapes:
        passed_over = kept.shape == (0,)
        length = 0 if passed_over else kept.shape[d]
        piece = grad.narrow(d, at, length)
        at += length
        pieces.append((piece.view(0) if passed_over else piece).to(kept.dtype))
    return pieces


_HELPERS: dict[str, Callable[..., Any]] = {
    "fit": fit,
    "restore": _restore,
    "reduced": _reduced,
    "dims": lambda dim: None if dim is None else [dim],
    "len": len,
    "prod": math.prod,
    "wrap": lambda dim, ndim: dim + ndim if dim < 0 else dim,
    "inverse_order": _inverse,
    "split_like": _split_like,
    "rounded": lambda number, t: t.new_full((), number).item(),
    "scaled": lambda t, weight: t if weight is None else t * weight,
    "in_format": lambda t, f: t if _format(t) == f else t.clone(memory_format=f),
    "channelwise": lambda t, w: t if w is None else (t.transpose(1, -1) * w).transpose(1, -1),
}
