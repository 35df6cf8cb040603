"""The linear algebra extension of the array API standard."""

from __future__ import annotations

from typing import Any, Literal

from .. import linalg as _linalg
from .._C import Tensor, dtype
from ._creation import triu
from ._products import matmul as matmul
from ._products import matrix_transpose as matrix_transpose
from ._products import tensordot as tensordot
from ._products import vecdot as vecdot
from ._promotion import same
from ._reductions import Axis, sum

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Return the triangular factor of each positive definite matrix.

    This is the lower factor, or, if `upper`, its conjugate transpose.
    """
    made = _linalg.cholesky(x, upper=upper)
    return triu(made) if upper and x.dtype.is_complex else made  # zeros that conjugation made negative


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the cross products along `axis`, whose size is 3 in both; the other dimensions are broadcast."""
    x1, x2 = same(x1, x2)
    count = max(x1.ndim, x2.ndim)
    wide = [x[(None,) * (count - x.ndim)] if x.ndim < count else x for x in (x1, x2)]
    return _linalg.cross(*wide, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """Return the determinants."""
    return _linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return the diagonals of the matrices, `offset` above the main one."""
    return _linalg.diagonal(x, offset=offset)


def eig(x: Tensor, /) -> Any:
    """Eigenvalues and eigenvectors, both complex."""
    return _linalg.eig(x)


def eigh(x: Tensor, /) -> Any:
    """Eigenvalues, in order, and eigenvectors of Hermitian matrices."""
    return _linalg.eigh(x)


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues, which are complex."""
    return _linalg.eigvals(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of Hermitian matrices, in order."""
    return _linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Return the inverses."""
    return _linalg.inv(x)


def matrix_norm(
    x: Tensor, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Tensor:
    """Return a norm of each matrix; None is the Frobenius norm."""
    return _linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Return the matrices to the power of an integer."""
    return _linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return how many singular values are greater than `rtol` times the greatest."""
    return _linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the products of every element of a vector with every element of another."""
    return _linalg.outer(*same(x1, x2))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return the pseudoinverses; singular values not greater than `rtol` times the greatest count as zero."""
    return _linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> Any:
    """`Q` with orthonormal columns and the upper triangular `R` whose product is `x`."""
    return _linalg.qr(x, mode=mode)


def slogdet(x: Tensor, /) -> Any:
    """`sign` and `logabsdet`, the logarithm of the absolute value, of the determinants."""
    return _linalg.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the solution of `x1 @ x = x2`; `x2` is a vector where it has one dimension, else matrices."""
    x1, x2 = same(x1, x2)
    vector = x2.ndim == 1  # one for all matrices
    if vector:
        x2 = x2.unsqueeze(-1)
    if x2.ndim == x1.ndim - 1:  # PyTorch may take these matrices for a batch of vectors
        x2 = x2.unsqueeze(0)
    made = _linalg.solve(x1, x2)
    return made.squeeze(-1) if vector else made


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """`U`, the singular values `S` in descending order, and `Vh`, whose product is `x`."""
    return _linalg.svd(x, full_matrices=full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """Return the singular values in descending order."""
    return _linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """Return the sums of the diagonals, `offset` above the main one."""
    return sum(_linalg.diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Return a norm of the vectors along `axis`, or of all elements."""
    if axis == ():
        return _linalg.vector_norm(x.unsqueeze(0), ord, 0)
    return _linalg.vector_norm(x, ord, axis, keepdims)
