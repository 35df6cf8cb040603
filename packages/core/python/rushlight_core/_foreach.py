"""Operators on lists of tensors, such as `_foreach_add_(params, grads, alpha=-lr)`.

`torch._foreach_NAME` applies the operator NAME to each tensor in turn. The second argument is one scalar for
all tensors, or a list with one scalar or tensor for each tensor. A function whose name ends in `_` modifies
the tensors in place and returns the list that was passed. The other functions return a new list. Optimizers
of other libraries call these functions, but the optimizers of `rushlight.optim` do not.
"""

from __future__ import annotations

from . import _C
from ._C import Tensor

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_UNARY = frozenset((
    "abs", "acos", "asin", "atan", "ceil", "clone", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
    "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc", "zero",
))  # fmt: skip
# For each operator, by its name in this module: the number of operands that follow the list.
_OTHERS = {
    "add": 1,
    "addcdiv": 2,
    "addcmul": 2,
    "clamp_max": 1,
    "clamp_min": 1,
    "copy": 1,
    "div": 1,
    "lerp": 2,
    "maximum": 1,
    "minimum": 1,
    "mul": 1,
    "pow": 1,
    "sub": 1,
}


_OPERANDS = ("other", "scalar", "scalars", "tensors1", "weight", "tensors2", "value", "exponent")


def _of_each(name: str, operand: Any, count: int) -> Sequence[Any]:
    """Return `operand` if it is a list of `count` operands, otherwise a list that repeats it `count` times."""
    if not isinstance(operand, (list, tuple)):
        return [operand] * count
    if len(operand) != count:
        raise RuntimeError(
            f"_foreach_{name}(): got lists of lengths {count} and {len(operand)}, needs lists of the same length"
        )
    return operand


def _larger(x: Tensor, limit: Any) -> Tensor:
    return _C.maximum(x, limit) if isinstance(limit, Tensor) else x.clamp(min=limit)


def _smaller(x: Tensor, limit: Any) -> Tensor:
    return _C.minimum(x, limit) if isinstance(limit, Tensor) else x.clamp(max=limit)


def _power(x: Any, exponent: Any) -> Tensor:
    return _C.pow(x, exponent)


_WRITTEN_OUT: dict[str, Callable[..., Tensor]] = {
    "clamp_max": _smaller,
    "clamp_min": _larger,
    "copy": lambda x, source: source.to(x.dtype, copy=True),
    "maximum": _larger,
    "minimum": _smaller,
    "pow": _power,
    "zero": lambda x: x.new_zeros(x.shape),
}


def _one(name: str) -> Callable[..., Tensor]:
    """Return the function that computes the operator for a single tensor, given the tensor and the other operands."""
    base = name.removesuffix("_")
    if name in ("copy_", "zero_") or (base not in _WRITTEN_OUT and name.endswith("_")):
        return getattr(Tensor, name)
    if base not in _WRITTEN_OUT:
        return getattr(_C, base)
    function = _WRITTEN_OUT[base]
    return (lambda x, *operands: x.copy_(function(x, *operands))) if name.endswith("_") else function


def _norm(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> list[Tensor]:
    """Return the norm of each tensor, computed over all its elements."""
    return [_C.linalg_vector_norm(x, ord, dtype=dtype) for x in self]


def _max(self: Sequence[Tensor]) -> list[Tensor]:
    """Return the largest element of each tensor."""
    return [x.max() for x in self]


def function(name: str) -> Callable[..., Any]:
    """Return the function `_foreach_<name>`. Raise AttributeError if there is no such function."""
    if name in ("norm", "max"):
        return _norm if name == "norm" else _max
    base = name.removesuffix("_")
    if base not in _UNARY and base not in _OTHERS:
        raise AttributeError(f"module 'rushlight_core' has no attribute '_foreach_{name}'")
    count, one = _OTHERS.get(base, 0), _one(name)

    def each(self: Any, *operands: Any, **kwargs: Any) -> Sequence[Tensor]:
        # Only if a number is raised to the power of each tensor, the list is the second argument.
        if base == "pow" and not isinstance(self, (list, tuple)):
            return [_power(self, x) for x in operands[0]]
        names = [k for k in _OPERANDS if k in kwargs]
        options = {"non_blocking": kwargs.pop("non_blocking")} if "non_blocking" in kwargs else {}
        alpha = kwargs.pop("alpha", 1)
        value = None
        if base in ("addcdiv", "addcmul"):  # the product is multiplied by the argument `value`
            names = [k for k in names if k not in ("value", "scalars")]
            value = kwargs.pop("value", kwargs.pop("scalars", None))
            if len(operands) > 2:
                operands, value = operands[:2], operands[2]
        elif base == "copy" and len(operands) > 1:
            operands = operands[:1]
        operands += tuple(kwargs.pop(k) for k in names)
        if kwargs or len(operands) != count:
            raise TypeError(
                f"_foreach_{name}(): got {len(operands)} operands and keywords {sorted(kwargs)}, needs {count} operands"
            )
        columns = [_of_each(name, x, len(self)) for x in operands]
        if value is not None:
            values = value.tolist() if isinstance(value, Tensor) else value
            rows = zip(self, *columns, _of_each(name, values, len(self)), strict=True)
            made = [one(*row[:-1], value=row[-1]) for row in rows]
        elif alpha != 1:
            made = [one(*row, alpha=alpha) for row in zip(self, *columns, strict=True)]
        else:
            made = [one(*row, **options) for row in zip(self, *columns, strict=True)]
        return self if name.endswith("_") else made

    each.__name__ = each.__qualname__ = f"_foreach_{name}"
    each.__doc__ = f"`{name}` on each tensor of a list."
    return each
