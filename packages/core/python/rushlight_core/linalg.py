"""Linear algebra: `rushlight.linalg`.

Functions work on the matrices or vectors in the last dimensions of tensors; the other dimensions are batch
dimensions.
"""

from __future__ import annotations

from ._C import Tensor, dtype, overridable
from ._C import _LinAlgError as LinAlgError
from ._C import diagonal as _diagonal
from ._C import linalg_cholesky as cholesky
from ._C import linalg_cholesky_ex as cholesky_ex
from ._C import linalg_cond as cond
from ._C import linalg_cross as cross
from ._C import linalg_det as det
from ._C import linalg_diagonal as diagonal
from ._C import linalg_eig as eig
from ._C import linalg_eigh as eigh
from ._C import linalg_eigvals as eigvals
from ._C import linalg_eigvalsh as eigvalsh
from ._C import linalg_householder_product as householder_product
from ._C import linalg_inv as inv
from ._C import linalg_inv_ex as inv_ex
from ._C import linalg_ldl_factor as ldl_factor
from ._C import linalg_ldl_factor_ex as ldl_factor_ex
from ._C import linalg_ldl_solve as ldl_solve
from ._C import linalg_lstsq as lstsq
from ._C import linalg_lu as lu
from ._C import linalg_lu_factor as lu_factor
from ._C import linalg_lu_factor_ex as lu_factor_ex
from ._C import linalg_lu_solve as lu_solve
from ._C import linalg_matrix_exp as matrix_exp
from ._C import linalg_matrix_norm as matrix_norm
from ._C import linalg_matrix_power as matrix_power
from ._C import linalg_matrix_rank as matrix_rank
from ._C import linalg_multi_dot as multi_dot
from ._C import linalg_norm as norm
from ._C import linalg_pinv as pinv
from ._C import linalg_qr as qr
from ._C import linalg_slogdet as slogdet
from ._C import linalg_solve as solve
from ._C import linalg_solve_ex as solve_ex
from ._C import linalg_solve_triangular as solve_triangular
from ._C import linalg_svd as svd
from ._C import linalg_svdvals as svdvals
from ._C import linalg_tensorinv as tensorinv
from ._C import linalg_tensorsolve as tensorsolve
from ._C import linalg_vander as vander
from ._C import linalg_vecdot as vecdot
from ._C import linalg_vector_norm as vector_norm
from ._C import matmul as matmul
from ._C import outer as outer
from ._contraction import tensordot as tensordot

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vander",
    "vecdot",
    "vector_norm",
]


@overridable
def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return the transpose of each matrix: a view of `x` with the last two dimensions exchanged.

    Args:
        x: the matrices.

    Shape:
        - Input: (*, m, n). Output: (*, n, m).

    Example:
        >>> matrix_transpose(torch.ones(2, 3)).shape
        torch.Size([3, 2])
    """
    return x.mT


@overridable
def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """Return the sum of the diagonal elements of each matrix.

    Args:
        x: the matrices.
        offset: the diagonal to sum: 0 is the main diagonal, positive numbers are above it, negative numbers below it.
        dtype: the dtype in which elements are summed, and of the result.

    Shape:
        - Input: (*, m, n). Output: (*).

    Example:
        >>> trace(torch.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """
    return _diagonal(x, offset, -2, -1).sum(-1, dtype=dtype)
