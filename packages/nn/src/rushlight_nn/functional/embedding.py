"""Look-up tables."""

from __future__ import annotations

from rushlight_core import Tensor

from .._core import core, operator

_embedding = operator("embedding")


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` (rows, width) at the integer `input` (*), as (*, width).

    Args:
        input: int32 or int64 row numbers.
        weight: the table.
        padding_idx: a row that gets no gradient.
        max_norm: shrink the rows used, in place, to at most this norm of order `norm_type`.
        scale_grad_by_freq: divide each row's gradient by how often it was used.
        sparse: make the gradient of the table a row-sparse value.

    Raises:
        IndexError: a row number or `padding_idx` is out of range.
    """
    if padding_idx is None:
        row = -1
    else:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise IndexError(
                f"embedding(padding_idx): {padding_idx} is out of range for a table of {rows} rows"
            )
        row = padding_idx % rows
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    return _embedding(weight, input, row, scale_grad_by_freq, sparse)


def _limit_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    with core.no_grad():
        rows = indices.reshape(-1)
        used = weight[rows]
        norms = used.norm(norm_type, 1, keepdim=True)
        # Rows within the limit keep their bits; a row used twice is written twice with the same values.
        weight[rows] = core.where(norms > max_norm, used * (max_norm / (norms + 1e-7)), used)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 (*, num_classes): one at the class each element of the int64 `tensor` (*) names, zero elsewhere.

    `num_classes` of -1 means one more than the largest element, which waits for the device.
    """
    if tensor.dtype != core.int64:
        raise RuntimeError(f"one_hot(tensor): got {tensor.dtype}, needs int64 class numbers")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("one_hot(num_classes): an empty tensor does not tell the number of classes")
        return core.zeros((*tensor.shape, num_classes), dtype=core.int64, device=tensor.device)
    if int(tensor.min()) < 0:
        raise RuntimeError(f"one_hot(tensor): got class {int(tensor.min())}, needs classes of at least 0")
    largest = int(tensor.max())
    if num_classes == -1:
        num_classes = largest + 1
    elif largest >= num_classes:
        raise RuntimeError(
            f"one_hot(tensor): got class {largest}, needs classes below num_classes={num_classes}"
        )
    return (tensor.unsqueeze(-1) == core.arange(num_classes, device=tensor.device)).to(core.int64)
