"""Decompositions of low rank, by random projection.

Halko, Martinsson and Tropp, "Finding structure with randomness", 2011.
"""

from __future__ import annotations

from . import _C
from ._C import Tensor, overridable


def _basis(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Return an orthonormal basis of `q` columns that approximates the range of A - M."""

    def times(x: Tensor) -> Tensor:
        return A @ x if M is None else A @ x - M @ x

    def transposed(x: Tensor) -> Tensor:
        return A.mH @ x if M is None else A.mH @ x - M.mH @ x

    basis = _C.linalg_qr(times(_C.randn(A.shape[-1], q, dtype=A.dtype, device=A.device))).Q
    for _ in range(niter):
        basis = _C.linalg_qr(transposed(basis)).Q
        basis = _C.linalg_qr(times(basis)).Q
    return basis


def _check(op: str, A: Tensor, q: int, niter: int) -> None:
    if A.dim() < 2:
        raise ValueError(f"{op}(A): needs matrices, at least 2 dimensions, got shape {tuple(A.shape)}")
    least = min(A.shape[-2:])
    if not 0 <= q <= least:
        raise ValueError(f"{op}(q): must be between 0 and the smaller matrix dimension, {least}, got {q}")
    if niter < 0:
        raise ValueError(f"{op}(niter): must not be negative, got {niter}")


@overridable
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S and V of an approximate singular value decomposition U diag(S) V^H of A, or of A - M if M is given.

    Args:
        A: matrices of shape (..., m, n).
        q: the number of singular values to compute, which should be somewhat larger than the rank of the
            matrices. At most min(m, n) are computed.
        niter: the number of subspace iterations, at least 0; more iterations increase the accuracy.
        M: a matrix that is subtracted from A. The shape of M broadcasts to the shape of A. The matrix A - M
            is never stored.

    Example:
        >>> A = torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0, 2.0]))  # of rank 1
        >>> U, S, V = torch.svd_lowrank(A, q=1)
        >>> S  # |(1, 2)| · |(2, 1, 2)|
        tensor([6.7082])
    """
    niter = 2 if niter is None else niter
    q = min([6 if q is None else q, *A.shape[-2:]])
    _check("svd_lowrank", A, q, niter)
    if M is not None:
        M = M.expand(A.shape)
    if A.shape[-2] < A.shape[-1]:
        V, S, U = svd_lowrank(A.mH, q, niter, None if M is None else M.mH)
        return U, S, V
    basis = _basis(A, q, niter, M)
    small = basis.mH @ A if M is None else basis.mH @ A - basis.mH @ M
    U, S, Vh = _C.linalg_svd(small, False)
    return basis @ U, S, Vh.mH


@overridable
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Return approximate principal components: the singular value decomposition (U, S, V) of the centred matrix `A`.

    Args:
        A: matrices of shape (..., m, n): m samples of n features.
        q: the number of components; by default min(6, m, n).
        center: whether to subtract each column's mean first. Pass False if the columns of `A` already have mean 0.
        niter: the number of subspace iterations, at least 0; more iterations increase the accuracy.

    Example:
        >>> U, S, V = torch.pca_lowrank(torch.randn(20, 5), q=2)
        >>> U.shape, S.shape, V.shape
        (torch.Size([20, 2]), torch.Size([2]), torch.Size([5, 2]))
    """
    if q is None:
        q = min(6, *A.shape[-2:])
    _check("pca_lowrank", A, q, niter)
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)
