"""What distributions share: parameters of one shape, probabilities and their logits, triangles as vectors."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence

import rushlight_core as core
from rushlight_core import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant: float = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the tensors, or the default one.

    Raises:
        ValueError: something else is among them.
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    for value in values:
        if not isinstance(value, (Tensor, numbers.Number)):
            raise ValueError(f"got {type(value).__name__}, needs numbers and tensors")
    like: dict[str, Any] = {"dtype": core.get_default_dtype()}
    if tensors:
        like = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    made = [v if isinstance(v, Tensor) else core.tensor(v, **like) for v in values]
    shape = core.broadcast_shapes(*(v.shape for v in made))
    # What has that shape stays itself, without a step in the graph that a second backward pass would find used up.
    return tuple(v if v.shape == shape else v.expand(shape) for v in made)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities at least one rounding error away from zero and one."""
    eps = core.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logarithms of probabilities, or the log-odds of binary ones; zero and one count as the nearest there is."""
    near = clamp_probs(probs)
    return near.log() - (-near).log1p() if is_binary else near.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of :func:`probs_to_logits`."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


class lazy_property:  # noqa: N801
    """A property that is computed when it is first asked for, and kept in the object's dictionary."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__: str = wrapped.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        # With gradients, whoever asks first: those who ask later may want them.
        with core.enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.__name__] = value
        return value


def standard_normal(shape: Sequence[int], like: Tensor) -> Tensor:
    """Normally distributed numbers of the dtype and device of `like`."""
    return core.randn(tuple(shape), dtype=like.dtype, device=like.device)


def open_uniform(shape: Sequence[int], like: Tensor) -> Tensor:
    """Numbers strictly between 0 and 1, of the dtype and device of `like`."""
    info = core.finfo(like.dtype)
    uniform = core.rand(tuple(shape), dtype=like.dtype, device=like.device)
    return uniform.clamp_(info.tiny, 1 - info.eps / 2)


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Return the sum over the last `dims` dimensions."""
    return value if dims == 0 else value.sum(list(range(-dims, 0)))


def half_log_determinant(factor: Tensor) -> Tensor:
    """Half the logarithm of the determinant of L Lᵀ, L triangular."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def inverse_factor(precision: Tensor) -> Tensor:
    """Return the lower triangular factor of the inverse of a positive definite matrix, by a triangular system.

    The factor of the matrix with its rows and columns in reverse order is the inverse's, transposed and reversed.
    """
    flipped = core.linalg.cholesky(core.flip(precision, (-2, -1)))
    inverse = core.flip(flipped, (-2, -1)).mT
    identity = core.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return core.linalg.solve_triangular(inverse, identity.expand_as(inverse), upper=False)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the lower triangle of matrices (..., n, n), up to diagonal `diag`, row by row as vectors.

    Raises:
        ValueError: the matrix has no such diagonal.
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(
            f"tril_matrix_to_vec(diag): got {diag}, needs -{n} to {n - 1} for matrices of {n} columns"
        )
    rows, columns = core.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of :func:`tril_matrix_to_vec`: zeros above the diagonal.

    Raises:
        ValueError: no triangle has as many elements as the vectors.
    """
    count = vec.shape[-1]
    # n (n + 1) / 2 elements, and with diag more or fewer diagonals that are n long.
    n = (-(1 + 2 * diag) + math.isqrt((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1))) // 2
    rows, columns = core.tril_indices(max(n, 0), max(n, 0), diag, device=vec.device)
    if rows.numel() != count:
        raise ValueError(f"vec_to_tril_matrix(vec): {count} elements are no triangle up to diagonal {diag}")
    matrix = vec.new_zeros((*vec.shape[:-1], n, n))
    index = (rows * n + columns).expand(vec.shape)
    return matrix.flatten(-2).scatter(-1, index, vec).unflatten(-1, (n, n))


# By the names that other libraries import.


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    return core.randn(tuple(shape), dtype=dtype, device=device)


_sum_rightmost = sum_rightmost
