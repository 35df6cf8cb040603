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
    """Return the lower triangular factor L of each positive-definite matrix `x` = L L^H.

    If `upper` is true, return the conjugate transpose of L.

    Shape:
        - Input and output: (*, n, n).

    Raises:
        RuntimeError: the matrices are not square.
        LinAlgError: a matrix is not positive-definite.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    made = _linalg.cholesky(x, upper=upper)
    return triu(made) if upper and x.dtype.is_complex else made  # triu clears the signs of zeros


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the cross products of vectors of three elements along `axis`.

    Shape:
        - Inputs: size 3 along `axis`; the other dimensions broadcast.
        - Output: the broadcast shape.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
        tensor([0, 0, 1])
    """
    x1, x2 = same(x1, x2)
    count = max(x1.ndim, x2.ndim)
    wide = [x[(None,) * (count - x.ndim)] if x.ndim < count else x for x in (x1, x2)]
    return _linalg.cross(*wide, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """Return the determinants of square matrices.

    Shape:
        - Input: (*, n, n).
        - Output: (*).

    Raises:
        RuntimeError: the matrices are not square.

    Example:
        >>> import rushlight.array_api as xp
        >>> x = xp.asarray([[2.0, 0.0], [1.0, 4.0]])
        >>> xp.linalg.det(x)
        tensor(8.)
    """
    return _linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return the diagonals of matrices. An `offset` of 0 selects the main diagonal, and 1 the one above it.

    Shape:
        - Input: (*, n, m).
        - Output: (*, k), where k is the length of the diagonal.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return _linalg.diagonal(x, offset=offset)


def eig(x: Tensor, /) -> Any:
    """Return the complex eigenvalues and eigenvectors of square matrices.

    Shape:
        - Input: (*, n, n).
        - Output: `eigenvalues` (*, n) and `eigenvectors` (*, n, n), whose columns are the eigenvectors.

    Raises:
        RuntimeError: the matrices are not square.

    Example:
        >>> import rushlight.array_api as xp
        >>> x = xp.asarray([[2.0, 0.0], [1.0, 4.0]])
        >>> sorted(xp.linalg.eig(x).eigenvalues.real.tolist())
        [2.0, 4.0]
    """
    return _linalg.eig(x)


def eigh(x: Tensor, /) -> Any:
    """Return the eigenvalues, in ascending order, and the eigenvectors of Hermitian matrices.

    Shape:
        - Input: (*, n, n); only the lower triangle is used.
        - Output: `eigenvalues` (*, n) and `eigenvectors` (*, n, n), whose columns are the eigenvectors.

    Raises:
        RuntimeError: the matrices are not square.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.eigh(xp.asarray([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
        tensor([1., 3.])
    """
    return _linalg.eigh(x)


def eigvals(x: Tensor, /) -> Tensor:
    """Return the complex eigenvalues of square matrices.

    Shape:
        - Input: (*, n, n).
        - Output: (*, n).

    Raises:
        RuntimeError: the matrices are not square.

    Example:
        >>> import rushlight.array_api as xp
        >>> x = xp.asarray([[2.0, 0.0], [1.0, 4.0]])
        >>> sorted(xp.linalg.eigvals(x).real.tolist())
        [2.0, 4.0]
    """
    return _linalg.eigvals(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """Return the eigenvalues of Hermitian matrices, in ascending order.

    Shape:
        - Input: (*, n, n); only the lower triangle is used.
        - Output: (*, n).

    Raises:
        RuntimeError: the matrices are not square.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 1.0], [1.0, 2.0]]))
        tensor([1., 3.])
    """
    return _linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Return the inverses of square matrices.

    Shape:
        - Input and output: (*, n, n).

    Raises:
        RuntimeError: the matrices are not square.
        LinAlgError: a matrix is singular.

    Example:
        >>> import rushlight.array_api as xp
        >>> x = xp.asarray([[2.0, 0.0], [1.0, 4.0]])
        >>> xp.linalg.inv(x)
        tensor([[ 0.5000,  0.0000],
                [-0.1250,  0.2500]])
    """
    return _linalg.inv(x)


def matrix_norm(
    x: Tensor, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Tensor:
    """Return a norm of each matrix.

    Args:
        x: the matrices.
        keepdims: whether to keep the two reduced dimensions, with size 1.
        ord: "fro" or None for the Frobenius norm, "nuc" for the nuclear norm, 1, -1, 2, -2, inf or -inf.

    Shape:
        - Input: (*, n, m).
        - Output: (*), or (*, 1, 1) with `keepdims`.

    Raises:
        RuntimeError: `x` has fewer than two dimensions, or `ord` is not supported.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5.)
    """
    return _linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Return the `n`-th power of square matrices; negative powers are powers of the inverses.

    Shape:
        - Input and output: (*, n, n).

    Raises:
        RuntimeError: the matrices are not square.
        LinAlgError: a matrix is singular.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
    """
    return _linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return the rank: the number of singular values greater than `rtol` times the largest one.

    Shape:
        - Input: (*, n, m).
        - Output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.matrix_rank(xp.ones((2, 3)))
        tensor(1)
    """
    return _linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the outer product of two vectors: the products of each element of `x1` and each element of `x2`.

    Shape:
        - Inputs: (n) and (m).
        - Output: (n, m).

    Raises:
        RuntimeError: an input is not a vector.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([1, 10]))
        tensor([[ 1, 10],
                [ 2, 20]])
    """
    return _linalg.outer(*same(x1, x2))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return the pseudoinverses of matrices.

    Singular values that are not greater than `rtol` times the largest singular value are treated as zero.

    Shape:
        - Input: (*, n, m).
        - Output: (*, m, n).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return _linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> Any:
    """Return the decomposition `x = Q R`, where `Q` has orthonormal columns and `R` is upper triangular.

    Shape:
        - Input: (*, n, m).
        - Output: Q (*, n, k) and R (*, k, m), where k is min(n, m), or n in mode "complete".

    Example:
        >>> import rushlight.array_api as xp
        >>> Q, R = xp.linalg.qr(xp.ones((3, 2)))
        >>> Q.shape, R.shape
        (torch.Size([3, 2]), torch.Size([2, 2]))
    """
    return _linalg.qr(x, mode=mode)


def slogdet(x: Tensor, /) -> Any:
    """Return the signs of determinants, and the logarithms of the determinants' absolute values.

    Shape:
        - Input: (*, n, n).
        - Output: `sign` and `logabsdet`, (*) each.

    Raises:
        RuntimeError: the matrices are not square.

    Example:
        >>> import rushlight.array_api as xp
        >>> x = xp.asarray([[2.0, 0.0], [1.0, 4.0]])
        >>> xp.linalg.slogdet(x).logabsdet
        tensor(2.0794)
    """
    return _linalg.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the solution x of `x1 @ x = x2`.

    Shape:
        - Inputs: `x1` (*, n, n); `x2` (*, n, k), or (n) for one vector.
        - Output: (*, n, k), or (*, n) for a vector.

    Raises:
        RuntimeError: the matrices are not square.
        LinAlgError: a matrix is singular.

    Example:
        >>> import rushlight.array_api as xp
        >>> x = xp.asarray([[2.0, 0.0], [1.0, 4.0]])
        >>> xp.linalg.solve(x, xp.asarray([2.0, 5.0]))
        tensor([1., 1.])
    """
    x1, x2 = same(x1, x2)
    vector = x2.ndim == 1  # one right-hand side for all matrices
    if vector:
        x2 = x2.unsqueeze(-1)
    if x2.ndim == x1.ndim - 1:  # PyTorch may interpret these matrices as a batch of vectors
        x2 = x2.unsqueeze(0)
    made = _linalg.solve(x1, x2)
    return made.squeeze(-1) if vector else made


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """Return `U`, the singular values `S` in descending order, and `Vh`, where `x = U diag(S) Vh`.

    Shape:
        - Input: (*, n, m); k is min(n, m).
        - Output: U (*, n, n), S (*, k) and Vh (*, m, m); U (*, n, k) and Vh (*, k, m) without `full_matrices`.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.svd(xp.asarray([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.])
    """
    return _linalg.svd(x, full_matrices=full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """Return the singular values of matrices in descending order.

    Shape:
        - Input: (*, n, m).
        - Output: (*, min(n, m)).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.svdvals(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
        tensor([4., 3.])
    """
    return _linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """Return the sums of diagonals. An `offset` of 0 selects the main diagonal, and 1 the one above it.

    Shape:
        - Input: (*, n, m).
        - Output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> x = xp.asarray([[2.0, 0.0], [1.0, 4.0]])
        >>> xp.linalg.trace(x)
        tensor(6.)
    """
    return sum(_linalg.diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Return a norm of the vectors along `axis`, or of all elements.

    Args:
        x: the tensor.
        axis: the dimensions over which to compute the norm; None treats the whole tensor as one vector.
        keepdims: whether to keep the reduced dimensions, with size 1.
        ord: the order of the norm, such as 1, 2 or inf; 0 counts the elements that are not zero.

    Shape:
        - Output: the shape of `x` without the reduced dimensions. With `keepdims`, the reduced dimensions
          remain, with size 1. If `axis` is None, all dimensions are reduced.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
        tensor(5.)
    """
    if axis == ():
        return _linalg.vector_norm(x.unsqueeze(0), ord, 0)
    return _linalg.vector_norm(x, ord, axis, keepdims)
