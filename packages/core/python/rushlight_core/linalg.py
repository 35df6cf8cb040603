"""Linear algebra: `rushlight.linalg`, over the last dimensions of tensors, whose other dimensions are batches."""

from __future__ import annotations

from ._C import linalg_cross as cross
from ._C import linalg_diagonal as diagonal
from ._C import linalg_matrix_exp as matrix_exp
from ._C import linalg_matrix_norm as matrix_norm
from ._C import linalg_matrix_power as matrix_power
from ._C import linalg_multi_dot as multi_dot
from ._C import linalg_norm as norm
from ._C import linalg_vander as vander
from ._C import linalg_vecdot as vecdot
from ._C import linalg_vector_norm as vector_norm
from ._C import matmul as matmul

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "norm",
    "vander",
    "vecdot",
    "vector_norm",
]
