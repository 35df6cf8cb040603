"""Embedding lookup and one-hot encoding."""

from __future__ import annotations

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._capturing import is_capturing
from .._core import core, operator

_embedding = operator("embedding")
_embedding_bag = operator("_embedding_bag")


@overridable
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of the table `weight` at the indices `input`.

    Args:
        input: the indices of the rows, int32 or int64.
        weight: the table of embedding vectors.
        padding_idx: the index of a row that does not receive a gradient.
        max_norm: the maximum norm of a row. A row with a larger norm is rescaled in place to the norm `max_norm` when the
            row is looked up.
        norm_type: the order of the norm.
        scale_grad_by_freq: whether to divide the gradient of each row by the number of times that its index occurs in
            `input`.
        sparse: whether the gradient of `weight` is a sparse tensor.

    Shape:
        - Input: (*).
        - `weight`: (rows, width).
        - Output: (*, width).

    Raises:
        IndexError: an index or `padding_idx` is out of range.

    Example:
        >>> F.embedding(torch.tensor([2, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        tensor([[5., 6.],
                [1., 2.]])
    """
    row = _checked(input, weight, padding_idx, max_norm, norm_type)
    return _embedding(weight, input, row, scale_grad_by_freq, sparse)


def _checked(
    input: Tensor, weight: Tensor, padding_idx: int | None, max_norm: float | None, norm_type: float
) -> int:
    """Return `padding_idx` as a nonnegative index, or -1 for None, and rescale rows whose norm is above `max_norm`."""
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
    return row


def _limit_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    with core.no_grad():
        rows = indices.reshape(-1)
        used = weight[rows]
        norms = used.norm(norm_type, 1, keepdim=True)
        # Rows within the limit do not change. A row that is used twice is written twice with the same values.
        weight[rows] = core.where(norms > max_norm, used * (max_norm / (norms + 1e-7)), used)


@overridable
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return a one-hot vector for each element: the vector is one at the index of the element's class, and zero elsewhere.

    Args:
        tensor: classes, int64.
        num_classes: number of classes; -1 means the largest class plus 1. Inside `vmap`, `num_classes` must be given, and
            the range of the classes is not checked: the vector of a class that is out of range contains only zeros.

    Shape:
        - Input: (*).
        - Output: (*, num_classes), int64.

    Raises:
        RuntimeError: the dtype is not int64, a class is out of range, or `num_classes` is not given and the tensor is empty
            or batched by `vmap`.

    Example:
        >>> F.one_hot(torch.tensor([0, 2, 1]))
        tensor([[1, 0, 0],
                [0, 0, 1],
                [0, 1, 0]])
    """
    if tensor.dtype != core.int64:
        raise RuntimeError(f"one_hot(tensor): got {tensor.dtype}, needs int64 class numbers")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError(
                f"one_hot(num_classes): got {num_classes} for an empty tensor, needs a positive number"
            )
        return core.zeros((*tensor.shape, num_classes), dtype=core.int64, device=tensor.device)
    if tensor._is_batched():  # inside `vmap`, values cannot be read
        if num_classes <= 0:
            raise RuntimeError(
                f"one_hot(num_classes): got {num_classes} inside vmap, needs a positive number\n"
                "hint: pass the number of classes"
            )
        return (tensor.unsqueeze(-1) == core.arange(num_classes, device=tensor.device)).to(core.int64)
    if (
        num_classes > 0 and tensor.device.type == "cpu"
    ):  # scatter_ checks the classes, and an exported program, too
        result = core.zeros((*tensor.shape, num_classes), dtype=core.int64)
        try:
            return result.scatter_(-1, tensor.unsqueeze(-1), 1)
        except (IndexError, RuntimeError):
            _check_classes(tensor, num_classes)
            raise
    largest = _check_classes(tensor, num_classes)
    if num_classes == -1:
        num_classes = largest + 1
    result = core.zeros((*tensor.shape, num_classes), dtype=core.int64, device=tensor.device)
    return result.scatter_(-1, tensor.unsqueeze(-1), 1)


def _check_classes(tensor: Tensor, num_classes: int) -> int:
    """Raise RuntimeError for a class that is out of range. Return the largest class."""
    least, largest = (int(x) for x in core.aminmax(tensor))
    if least < 0:
        raise RuntimeError(f"one_hot(tensor): got class {least}, needs classes of at least 0")
    if num_classes != -1 and largest >= num_classes:
        raise RuntimeError(
            f"one_hot(tensor): got class {largest}, needs classes below num_classes={num_classes}"
        )
    return largest


@overridable
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the table rows in each bag, where a bag is a list of row indices.

    Args:
        input: indices of rows of the table, int32 or int64. If `input` is 2-D, each row is a bag. If `input` is 1-D, it
            contains the bags one after another, and `offsets` contains the position at which each bag begins.
        weight: the table of embedding vectors.
        offsets: the position in a 1-D `input` at which each bag begins; the first offset is 0. The result for an empty bag
            is zero.
        max_norm, norm_type, scale_grad_by_freq, sparse: see :func:`embedding`.
        mode: "sum", "mean" or "max".
        per_sample_weights: a factor for the row of each index; only for mode "sum".
        include_last_offset: whether `offsets` has an additional last element, the length of the input.
        padding_idx: index of a row that is excluded from all bags.

    Shape:
        - Input: (B, n), or (n) with `offsets` (B); `per_sample_weights` has the input's shape.
        - `weight`: (rows, width).
        - Output: (B, width).

    Raises:
        ValueError: `input` or `offsets` has a wrong number of dimensions, `per_sample_weights` does not have the shape
            of `input`, `mode` is unknown, or `sparse` is set for mode "max".
        RuntimeError: the offsets are out of range.
        NotImplementedError: `per_sample_weights` are given for a mode other than "sum".
        IndexError: an index is out of range.

    Example:
        >>> table = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
        >>> F.embedding_bag(torch.tensor([[1, 2], [2, 2]]), table, mode="mean")
        tensor([[2., 3.],
                [3., 4.]])
    """
    name = "embedding_bag"
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"{name}(mode): got {mode!r}, needs 'sum', 'mean' or 'max'")
    if per_sample_weights is not None:
        if per_sample_weights.shape != input.shape:
            raise ValueError(
                f"{name}(per_sample_weights): got shape {tuple(per_sample_weights.shape)}, "
                f"needs the input's shape {tuple(input.shape)}"
            )
        if mode != "sum":
            raise NotImplementedError(f"{name}(per_sample_weights): needs mode 'sum', got {mode!r}")
    bags, length = _bags(name, input, offsets, include_last_offset)
    flat = input.reshape(-1)
    if mode == "max" and sparse:
        raise ValueError(f"{name}(sparse): max mode does not support sparse weights")
    if mode != "max" and per_sample_weights is None and weight.device.type == "cpu":
        row = _checked(flat, weight, padding_idx, max_norm, norm_type)
        equal = padding_idx is None and input.dim() == 2  # bags of one size
        divisor = float(max(input.shape[1], 1)) if mode == "mean" and equal else 1.0
        sums = _embedding_bag(weight, flat, bags, length, divisor, row, scale_grad_by_freq, sparse)
        if mode == "sum" or equal:
            return sums
        return _mean(sums, flat, bags, length, None if padding_idx is None else flat == row)
    rows = embedding(flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    absent = None if padding_idx is None else flat == padding_idx % weight.shape[0]
    if mode == "max":
        if input.dim() == 2 and input.numel() and absent is None:  # bags of one size
            return rows.reshape(*input.shape, -1).max(1)[0]
        return _largest(rows, bags, length, absent)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    if absent is not None:
        rows = rows.masked_fill(absent.unsqueeze(-1), 0.0)
    sums = core.zeros((length, weight.shape[1]), dtype=rows.dtype, device=rows.device).index_add(
        0, bags, rows
    )
    return sums if mode == "sum" else _mean(sums, flat, bags, length, absent)


def _mean(sums: Tensor, flat: Tensor, bags: Tensor, length: int, absent: Tensor | None) -> Tensor:
    """Divide the sum of each bag by the number of rows in the bag. Rows that the mask `absent` selects are not counted."""
    present = core.ones(flat.shape, dtype=sums.dtype, device=sums.device)
    if absent is not None:
        present = present.masked_fill(absent, 0.0)
    counts = core.zeros(length, dtype=sums.dtype, device=sums.device).index_add(0, bags, present)
    return sums / counts.clamp(min=1).unsqueeze(-1)


def _bags(name: str, input: Tensor, offsets: Tensor | None, include_last: bool) -> tuple[Tensor, int]:
    """Return the bag to which each index belongs, and the number of bags."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                f"{name}(offsets): must be None for a 2-dimensional input, whose rows are the bags, "
                f"got a tensor of shape {tuple(offsets.shape)}"
            )
        count, length = input.shape
        return core.arange(count, device=input.device).unsqueeze(-1).expand(count, length).reshape(-1), count
    if input.dim() != 1:
        raise ValueError(f"{name}(input): got {input.dim()} dimensions, needs 1 or 2")
    if offsets is None or offsets.dim() != 1:
        raise ValueError(
            f"{name}(offsets): must have one dimension for an input of one dimension, "
            f"got {'None' if offsets is None else tuple(offsets.shape)}"
        )
    total, number = input.shape[0], offsets.numel()
    if include_last:
        if number == 0:
            raise RuntimeError(
                f"{name}(offsets): must have at least one element with include_last_offset=True, got "
                "an empty tensor"
            )
        number -= 1
    # In a program, wrong offsets lead to positions or bags that are out of range, which raises an error in the run.
    if not is_capturing():
        _check_offsets(name, offsets, total, include_last)
    begun = core.zeros(total + 1, dtype=core.int64, device=input.device)
    begun = begun.index_add(0, offsets.to(core.int64), core.ones_like(offsets, dtype=core.int64))
    return begun.cumsum(0)[:total] - 1, number


def _check_offsets(name: str, offsets: Tensor, total: int, include_last: bool) -> None:
    if offsets.numel() and int(offsets[0]) != 0:
        raise RuntimeError(f"{name}(offsets): must begin with 0, got {int(offsets[0])}")
    if include_last and int(offsets[-1]) != total:
        raise RuntimeError(
            f"{name}(offsets): must end with the number of indices, {total}, got {int(offsets[-1])}"
        )
    if offsets.numel() and int(offsets.max()) > total:
        raise RuntimeError(
            f"{name}(offsets): got {int(offsets.max())}, needs at most {total}, the number of indices in the input"
        )


def _largest(rows: Tensor, bags: Tensor, count: int, absent: Tensor | None) -> Tensor:
    """Return the maximum over the rows of each bag, column by column, computed on a padded table of bags."""
    if absent is not None:
        kept = absent.logical_not().nonzero().reshape(-1)
        rows, bags = rows.index_select(0, kept), bags.index_select(0, kept)
    sizes = core.zeros(count, dtype=core.int64, device=bags.device).index_add(0, bags, core.ones_like(bags))
    longest = int(sizes.max()) if count else 0
    if longest == 0:
        # Add the sum over zero rows, so that the result is connected with the graph of the rows.
        return core.zeros((count, rows.shape[1]), dtype=rows.dtype, device=rows.device) + rows.sum(0)
    position = core.arange(bags.numel(), device=bags.device) - (sizes.cumsum(0) - sizes).index_select(0, bags)
    table = core.full((count * longest,), bags.numel(), dtype=core.int64, device=bags.device)
    table[bags * longest + position] = core.arange(bags.numel(), device=bags.device)
    lowest = core.full((1, rows.shape[1]), -float("inf"), dtype=rows.dtype, device=rows.device)
    padded = core.cat([rows, lowest]).index_select(0, table).reshape(count, longest, -1)
    return padded.max(1)[0].masked_fill((sizes == 0).unsqueeze(-1), 0.0)
