"""The function torch.lu, which PyTorch has deprecated in favour of linalg.lu_factor."""

from __future__ import annotations

from . import _C
from ._C import Tensor, overridable


@overridable
def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: tuple[Tensor, ...] | None = None
) -> tuple[Tensor, ...]:
    """Return the factors of A = P L U in one tensor, and the rows that were exchanged; see linalg.lu_factor.

    Args:
        A: matrices of shape (..., m, n).
        pivot: whether rows are exchanged; must be True on the CPU.
        get_infos: whether to return a third result: 0, or the position of the first zero on U's diagonal.
            Without `get_infos`, LinAlgError is raised for a matrix with such a zero.
        out: tensors for the results.

    Example:
        >>> LU, pivots = torch.lu(torch.tensor([[1.0, 2.0], [4.0, 4.0]]))
        >>> LU, pivots
        (tensor([[4.0000, 4.0000],
                [0.2500, 1.0000]]), tensor([2, 2], dtype=torch.int32))
    """
    results = _C.linalg_lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    if out is not None:
        return (_C.linalg_lu_factor_ex if get_infos else _C.linalg_lu_factor)(A, pivot=pivot, out=out)
    return tuple(results) if get_infos else tuple(results)[:2]
