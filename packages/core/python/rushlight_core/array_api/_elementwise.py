"""Elementwise functions of the array API standard."""

from __future__ import annotations

from collections.abc import Callable

from .. import _C
from .._C import Tensor, overridable
from ._promotion import Scalar, like, pair

Unary = Callable[[Tensor], Tensor]
Operand = Tensor | Scalar
Binary = Callable[[Operand, Operand], Tensor]


def _documentation(operator: Callable[..., Tensor], arguments: str, note: str = "") -> str:
    """Return a docstring that names the operator and contains the operator's example."""
    _, mark, example = (operator.__doc__ or "").partition("Example::")
    call = f"Return `rushlight.{operator.__name__}({arguments})`{note}."
    return "\n\n".join([call, *([mark + example] if mark else [])])


def _unary(name: str, operator: Unary) -> Unary:
    def function(x: Tensor, /) -> Tensor:
        return operator(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _documentation(operator, "x")
    return function


def _binary(name: str, operator: Callable[[Tensor, Tensor], Tensor]) -> Binary:
    def function(x1: Tensor | Scalar, x2: Tensor | Scalar, /) -> Tensor:
        return operator(*pair(name, x1, x2))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _documentation(operator, "x1, x2", "; one of the operands may be a Python scalar")
    return function


abs: Unary = _unary("abs", _C.abs)
acos: Unary = _unary("acos", _C.acos)
acosh: Unary = _unary("acosh", _C.acosh)
add: Binary = _binary("add", _C.add)
asin: Unary = _unary("asin", _C.asin)
asinh: Unary = _unary("asinh", _C.asinh)
atan: Unary = _unary("atan", _C.atan)
atan2: Binary = _binary("atan2", _C.atan2)
atanh: Unary = _unary("atanh", _C.atanh)
bitwise_and: Binary = _binary("bitwise_and", _C.bitwise_and)
bitwise_invert: Unary = overridable(
    _unary("bitwise_invert", _C.bitwise_not)
)  # `rushlight` has this function, too
bitwise_left_shift: Binary = _binary("bitwise_left_shift", _C.bitwise_left_shift)
bitwise_or: Binary = _binary("bitwise_or", _C.bitwise_or)
bitwise_right_shift: Binary = _binary("bitwise_right_shift", _C.bitwise_right_shift)
bitwise_xor: Binary = _binary("bitwise_xor", _C.bitwise_xor)
ceil: Unary = _unary("ceil", _C.ceil)
conj: Unary = _unary("conj", _C.conj)
copysign: Binary = _binary("copysign", _C.copysign)
cos: Unary = _unary("cos", _C.cos)
cosh: Unary = _unary("cosh", _C.cosh)
divide: Binary = _binary("divide", _C.divide)
equal: Binary = _binary("equal", _C.eq)
exp: Unary = _unary("exp", _C.exp)
expm1: Unary = _unary("expm1", _C.expm1)
floor: Unary = _unary("floor", _C.floor)
floor_divide: Binary = _binary("floor_divide", _C.floor_divide)
greater: Binary = _binary("greater", _C.gt)
greater_equal: Binary = _binary("greater_equal", _C.ge)
hypot: Binary = _binary("hypot", _C.hypot)
isfinite: Unary = _unary("isfinite", _C.isfinite)
isinf: Unary = _unary("isinf", _C.isinf)
isnan: Unary = _unary("isnan", _C.isnan)
less: Binary = _binary("less", _C.lt)
less_equal: Binary = _binary("less_equal", _C.le)
log: Unary = _unary("log", _C.log)
log1p: Unary = _unary("log1p", _C.log1p)
log2: Unary = _unary("log2", _C.log2)
log10: Unary = _unary("log10", _C.log10)
logaddexp: Binary = _binary("logaddexp", _C.logaddexp)
logical_and: Binary = _binary("logical_and", _C.logical_and)
logical_not: Unary = _unary("logical_not", _C.logical_not)
logical_or: Binary = _binary("logical_or", _C.logical_or)
logical_xor: Binary = _binary("logical_xor", _C.logical_xor)
maximum: Binary = _binary("maximum", _C.maximum)
minimum: Binary = _binary("minimum", _C.minimum)
multiply: Binary = _binary("multiply", _C.multiply)
negative: Unary = _unary("negative", _C.negative)
nextafter: Binary = _binary("nextafter", _C.nextafter)
not_equal: Binary = _binary("not_equal", _C.ne)
positive: Unary = _unary("positive", _C.positive)
pow: Binary = _binary("pow", _C.pow)
reciprocal: Unary = _unary("reciprocal", _C.reciprocal)
remainder: Binary = _binary("remainder", _C.remainder)
signbit: Unary = _unary("signbit", _C.signbit)
sin: Unary = _unary("sin", _C.sin)
sinh: Unary = _unary("sinh", _C.sinh)
sqrt: Unary = _unary("sqrt", _C.sqrt)
square: Unary = _unary("square", _C.square)
subtract: Binary = _binary("subtract", _C.subtract)
tan: Unary = _unary("tan", _C.tan)
tanh: Unary = _unary("tanh", _C.tanh)
trunc: Unary = _unary("trunc", _C.trunc)


def round(x: Tensor, /) -> Tensor:
    """Return each element rounded to the nearest integer, ties to even; for complex numbers, both parts are rounded.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.round(xp.asarray([0.5, 1.5, -1.2]))
        tensor([ 0.,  2., -1.])
    """
    return _C.complex(_C.round(x.real), _C.round(x.imag)) if x.dtype.is_complex else _C.round(x)


def sign(x: Tensor, /) -> Tensor:
    """Return the sign of each element: -1, 0 or 1. For complex numbers x, return x / |x|, or 0 if x is 0.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.sign(xp.asarray([-3.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.])
    """
    return _C.sgn(x) if x.dtype.is_complex else _C.sign(x)


def real(x: Tensor, /) -> Tensor:
    """Return the real part of each element; a real tensor is returned unchanged.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.real(xp.asarray([1 + 2j, 3j]))
        tensor([1., 0.])
    """
    return _C.real(x)


def imag(x: Tensor, /) -> Tensor:
    """Return the imaginary part of each element, or zeros for a real tensor.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.imag(xp.asarray([1 + 2j, 3j]))
        tensor([2., 3.])
        >>> xp.imag(xp.ones(2))
        tensor([0., 0.])
    """
    return _C.imag(x) if x.dtype.is_complex else _C.zeros_like(x)


def clip(x: Tensor, /, min: Tensor | Scalar | None = None, max: Tensor | Scalar | None = None) -> Tensor:
    """Return the elements of `x`, limited to the range from `min` to `max`.

    The result has the dtype of `x`, regardless of the dtypes of the bounds.

    Args:
        x: the tensor.
        min: the lower bounds: a scalar, a tensor, or None for no bound.
        max: the upper bounds: a scalar, a tensor, or None for no bound.

    Shape:
        - Input: (*), which is broadcast with the bounds that are tensors.
        - Output: the shape to which the tensors broadcast.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.clip(xp.asarray([-2, 1, 5]), 0, 3)
        tensor([0, 1, 3])
    """
    if min is None and max is None:
        return x.clone()
    bounds = [
        bound if bound is None else (bound if isinstance(bound, Tensor) else like(bound, x)).to(x.dtype)
        for bound in (min, max)
    ]
    return _C.clamp(x, *bounds)
