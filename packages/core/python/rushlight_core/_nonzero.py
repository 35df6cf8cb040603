"""Define `nonzero`, which calls one operator for a matrix of indices, and another one for `as_tuple=True`."""

from __future__ import annotations

from . import _C
from ._C import Tensor, overridable

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any

_method = _C.Tensor.nonzero


@overridable
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """Return the indices of the elements that are not zero, in row-major order.

    Args:
        input: the tensor.
        as_tuple: whether to return a tuple with a tensor for each dimension. The tuple can be used as an index.
        out: the tensor to which the result is written.

    Shape:
        - Input: (*), of D dimensions. Output: (count, D), int64; or D tensors of shape (count).

    Example:
        >>> torch.nonzero(torch.tensor([[1, 0], [0, 2]]))
        tensor([[0, 0],
                [1, 1]])
    """
    options = {} if out is None else {"out": out}
    if as_tuple is False:
        return _C.nonzero(input, **options)
    return _C.nonzero(input, as_tuple=True, **options) if _truth(as_tuple) else _C.nonzero(input, **options)


def _tensor_nonzero(self: Tensor, *, as_tuple: bool = False) -> Any:
    return _method(self, as_tuple=True) if as_tuple is not False and _truth(as_tuple) else _method(self)


def _truth(as_tuple: Any) -> bool:
    """Return a bool of Python or NumPy as a bool."""
    if type(as_tuple) is not bool and (type(as_tuple).__module__, type(as_tuple).__name__[:4]) != (
        "numpy",
        "bool",
    ):
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}")
    return bool(as_tuple)


_tensor_nonzero.__name__, _tensor_nonzero.__qualname__ = "nonzero", "Tensor.nonzero"
_tensor_nonzero.__doc__ = nonzero.__doc__
setattr(_C.Tensor, "nonzero", _tensor_nonzero)  # noqa: B010 (the stub has the operator's)
