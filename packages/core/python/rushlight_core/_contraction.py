"""`einsum` and `tensordot`, which accept several forms of arguments and convert them to the form of the operators."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters, ascii_uppercase
from typing import Any

from . import _C
from ._C import Tensor, overridable

# The letter of each dimension that is given as a number, in the order in which letters are sorted.
_LETTERS = ascii_uppercase + ascii_letters[:26]


@overridable
def einsum(*args: Any) -> Tensor:
    """Sum products of elements by the Einstein summation convention: `einsum("ij,jk->ik", a, b)` is the matrix product.

    Args:
        args: either an equation and its operands, which may be in a list; or operands, each followed by a
            list of its dimensions. Each dimension is either `...` or an integer from 0 to 51. After the last
            operand, a list of the result's dimensions may follow.

    See the operator `einsum` for the syntax of the equation.

    Shape:
        - Operands: one dimension for each letter in the equation. Dimensions with the same letter have the same size, or
            size 1.

    Raises:
        ValueError: there is no operand, or a dimension is not an integer from 0 to 51.
        TypeError: an operand is followed by an object that is not a list of dimensions.
        RuntimeError: the equation is not valid, or does not match the operands.

    Example:
        >>> a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]])
        >>> torch.einsum("ij,jk->ik", a, b)
        tensor([[11.]])
    """
    if len(args) < 2 or (len(args) == 2 and isinstance(args[1], (list, tuple)) and not args[1]):
        raise ValueError("einsum(equation, operands): needs an equation and at least one operand")
    if isinstance(args[0], Tensor):
        return _C.einsum(*_from_lists(args))
    if len(args) == 2 and isinstance(args[1], (list, tuple)):
        return _C.einsum(args[0], *args[1])
    return _C.einsum(*args)


def _from_lists(args: Sequence[Any]) -> list[Any]:
    pairs = len(args) // 2
    equation = ",".join(_subscripts(args[2 * i + 1]) for i in range(pairs))
    if len(args) % 2:
        equation += "->" + _subscripts(args[-1])
    return [equation, *(args[2 * i] for i in range(pairs))]


def _subscripts(dims: Any) -> str:
    if not isinstance(dims, (list, tuple)):
        raise TypeError(
            f"einsum(): expected a list of dimensions after each operand, got {type(dims).__name__}"
        )
    text = ""
    for d in dims:
        if d is not ... and not (isinstance(d, int) and 0 <= d < len(_LETTERS)):
            raise ValueError(f"einsum(): a dimension must be a number from 0 to 51 or Ellipsis, got {d!r}")
        text += "..." if d is ... else _LETTERS[d]
    return text


@overridable
def tensordot(
    a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] | Tensor = 2, out: Tensor | None = None
) -> Tensor:
    """Multiply the elements of `a` and `b`, and sum the products over several dimensions.

    Args:
        a: a tensor.
        b: a tensor.
        dims: an int n, to sum over the last n dimensions of `a` and the first n dimensions of `b`; or a list
            of dimensions of `a` and a list of the corresponding dimensions of `b`; or a tensor that contains
            this int or these lists.
        out: the tensor to which the result is written.

    Returns: A tensor with the remaining dimensions of `a`, followed by the remaining dimensions of `b`.

    Raises:
        RuntimeError: `dims` is not valid for the shapes, or a dimension of `a` and the corresponding dimension of `b` differ
            in size.

    Example:
        >>> torch.tensordot(torch.ones(3, 4, 5), torch.ones(4, 5, 2), dims=2).shape
        torch.Size([3, 2])
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, (list, tuple)) and len(dims) == 1 and isinstance(dims[0], int):
        dims = dims[0]
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot(dims): must be from 0 to {min(a.dim(), b.dim())} for shapes {tuple(a.shape)} and "
                f"{tuple(b.shape)}, got {dims}"
            )
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    return _C._tensordot(a, b, left, right) if out is None else _C._tensordot(a, b, left, right, out=out)
