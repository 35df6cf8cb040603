"""Functions that broadcast arguments, convert probabilities to logits, and convert triangular matrices to vectors."""

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
    """Broadcast numbers and tensors to tensors of a common shape.

    Numbers are converted to the dtype and device of the first tensor, or the default dtype if there are no
    tensors.

    Args:
        values: numbers and tensors.

    Shape:
        - Inputs: (*), shapes that broadcast. Outputs: their common shape.

    Raises:
        ValueError: a value is neither a number nor a tensor.

    Example:
        >>> from rushlight.distributions.utils import broadcast_all
        >>> broadcast_all(1.0, torch.tensor([2.0, 3.0]))
        (tensor([1., 1.]), tensor([2., 3.]))
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    for value in values:
        if not isinstance(value, (Tensor, numbers.Number)):
            raise ValueError(
                f"broadcast_all(values): must be numbers and tensors, got {type(value).__name__}"
            )
    like: dict[str, Any] = {"dtype": core.get_default_dtype()}
    if tensors:
        like = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    made = [v if isinstance(v, Tensor) else core.tensor(v, **like) for v in values]
    shape = core.broadcast_shapes(*(v.shape for v in made))
    # Return a tensor that already has this shape unchanged. Calling expand() would add a node to the graph, and a second
    # backward pass through the result could not use this node again.
    return tuple(v if v.shape == shape else v.expand(shape) for v in made)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamp probabilities to the range from eps to 1 - eps, where eps is the machine epsilon of their dtype.

    Args:
        probs: the probabilities.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> from rushlight.distributions.utils import clamp_probs
        >>> clamp_probs(torch.tensor([0.0, 0.5])).log()
        tensor([-15.9424,  -0.6931])
    """
    eps = core.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the logarithms of probabilities, or the log-odds of binary probabilities.

    The probabilities are first clamped by :func:`clamp_probs`.

    Args:
        probs: the probabilities.
        is_binary: whether each element is the probability of one of two outcomes. If False, the probabilities
            along the last dimension sum to 1.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> from rushlight.distributions.utils import probs_to_logits
        >>> probs_to_logits(torch.tensor([0.5, 0.9]), is_binary=True)
        tensor([0.0000, 2.1972])
    """
    near = clamp_probs(probs)
    return near.log() - (-near).log1p() if is_binary else near.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Convert logits to probabilities: the inverse of :func:`probs_to_logits`.

    Args:
        logits: the logits.
        is_binary: whether each logit is the log-odds of one of two outcomes. If False, the softmax along the
            last dimension is returned.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> from rushlight.distributions.utils import logits_to_probs
        >>> logits_to_probs(torch.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
    """
    return logits.sigmoid() if is_binary else logits.softmax(-1)


class lazy_property:  # noqa: N801
    """A property that is computed on first access and then stored in the object's dictionary.

    Args:
        wrapped: the method that computes the property.

    Example:
        >>> from rushlight.distributions.utils import lazy_property
        >>> class Square:
        ...     @lazy_property
        ...     def area(self):
        ...         print("computed")
        ...         return 4
        >>> square = Square()
        >>> square.area, square.area
        computed
        (4, 4)
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__: str = wrapped.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        # Record gradients even if the first use does not need them, because later uses may.
        with core.enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.__name__] = value
        return value


def standard_normal(shape: Sequence[int], like: Tensor) -> Tensor:
    """Return normally distributed random numbers with the dtype and device of `like`."""
    return core.randn(tuple(shape), dtype=like.dtype, device=like.device)


def open_uniform(shape: Sequence[int], like: Tensor) -> Tensor:
    """Return random numbers strictly between 0 and 1, with the dtype and device of `like`."""
    info = core.finfo(like.dtype)
    uniform = core.rand(tuple(shape), dtype=like.dtype, device=like.device)
    return uniform.clamp_(info.tiny, 1 - info.eps / 2)


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Return the sum over the last `dims` dimensions."""
    return value if dims == 0 else value.sum(list(range(-dims, 0)))


def half_log_determinant(factor: Tensor) -> Tensor:
    """Return half the logarithm of the determinant of L Lᵀ for a triangular matrix L."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def inverse_factor(precision: Tensor) -> Tensor:
    """Return the Cholesky factor of the inverse of a positive definite matrix, by solving a triangular system.

    The matrix is U Uᵀ with an upper triangular U, and the result is the inverse of Uᵀ. To compute U, the rows
    and columns of the matrix are flipped, the Cholesky factor of the flipped matrix is computed, and the rows
    and columns of the factor are flipped.
    """
    flipped = core.linalg.cholesky(core.flip(precision, (-2, -1)))
    inverse = core.flip(flipped, (-2, -1)).mT
    identity = core.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return core.linalg.solve_triangular(inverse, identity.expand_as(inverse), upper=False)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements of the lower triangles of matrices as vectors, row by row.

    Args:
        mat: the matrices.
        diag: the highest diagonal that belongs to the triangle; 0 for the main diagonal.

    Shape:
        - Input: (*, n, n).
        - Output: (*, number of elements of the triangle).

    Raises:
        ValueError: the matrices have no diagonal `diag`.

    Example:
        >>> from rushlight.distributions.utils import tril_matrix_to_vec
        >>> tril_matrix_to_vec(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 3, 4])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(
            f"tril_matrix_to_vec(diag): got {diag}, needs -{n} to {n - 1} for matrices of {n} columns"
        )
    rows, columns = core.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return lower triangular matrices with the elements of vectors: the inverse of :func:`tril_matrix_to_vec`.

    Args:
        vec: the vectors.
        diag: the highest diagonal that belongs to the triangle; 0 for the main diagonal.

    Shape:
        - Input: (*, number of elements of the triangle).
        - Output: (*, n, n).

    Raises:
        ValueError: the length of the vectors is not the number of elements of such a triangle.

    Example:
        >>> from rushlight.distributions.utils import vec_to_tril_matrix
        >>> vec_to_tril_matrix(torch.tensor([1, 3, 4]))
        tensor([[1, 0],
                [3, 4]])
    """
    count = vec.shape[-1]
    # Invert the number of elements as a function of n, which is n (n + 1) / 2 for diag = 0.
    n = (-(1 + 2 * diag) + math.isqrt((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1))) // 2
    rows, columns = core.tril_indices(max(n, 0), max(n, 0), diag, device=vec.device)
    if rows.numel() != count:
        raise ValueError(
            f"vec_to_tril_matrix(vec): got {count} elements, which do not fill a triangle up to diagonal {diag}"
        )
    matrix = vec.new_zeros((*vec.shape[:-1], n, n))
    index = (rows * n + columns).expand(vec.shape)
    return matrix.flatten(-2).scatter(-1, index, vec).unflatten(-1, (n, n))


# Other libraries import these names.


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    return core.randn(tuple(shape), dtype=dtype, device=device)


_sum_rightmost = sum_rightmost
