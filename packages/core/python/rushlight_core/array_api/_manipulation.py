"""Functions of the array API standard that change shapes or the positions of elements."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _C
from .._C import Tensor, overridable

Axes = int | tuple[int, ...]


@overridable
def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Return tensors expanded to the shape to which they broadcast.

    Args:
        arrays: tensors whose shapes broadcast.

    Example:
        >>> import rushlight.array_api as xp
        >>> x, y = xp.broadcast_arrays(xp.ones((2, 1)), xp.zeros(3))
        >>> x.shape, y.shape
        (torch.Size([2, 3]), torch.Size([2, 3]))
    """
    return list(_C.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """Return `x` expanded to `shape`, as a view.

    Shape:
        - Output: `shape`.

    Raises:
        RuntimeError: `x` does not broadcast to `shape`.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return _C.broadcast_to(x, shape)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which `shapes` broadcast together.

    Raises:
        ValueError: the shapes do not broadcast.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    from .._shapes import broadcast_shapes as common

    try:
        return tuple(common(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join tensors along `axis`; if `axis` is None, flatten the tensors first.

    Shape:
        - Inputs: tensors whose sizes are equal except along `axis`.
        - Output: the size along `axis` is the sum of the inputs' sizes. With `axis=None`: (n), where n is
          the total number of elements.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.concat([xp.zeros(2), xp.ones(1)])
        tensor([0., 0., 1.])
        >>> xp.concat([xp.ones((1, 2)), xp.ones((2, 2))]).shape
        torch.Size([3, 2])
    """
    return _C.cat([x.reshape(-1) for x in arrays], 0) if axis is None else _C.cat(list(arrays), axis)


@overridable
def expand_dims(x: Tensor, /, axis: Axes = 0) -> Tensor:
    """Insert dimensions of size 1 at the positions `axis` of the result.

    Shape:
        - Output: the shape of `x` with sizes of 1 inserted at `axis`.

    Raises:
        IndexError: a position is listed twice or out of range.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.expand_dims(xp.ones((2, 3)), axis=(0, -1)).shape
        torch.Size([1, 2, 3, 1])
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    count = x.ndim + len(axes)
    if any(not -count <= one < count for one in axes) or len({one % count for one in axes}) != len(axes):
        raise IndexError(
            f"expand_dims(axis): got {axis}, needs different positions in a result of {count} dimensions"
        )
    for one in sorted(one % count for one in axes):
        x = x.unsqueeze(one)
    return x


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """Return the elements in reverse order along `axis`, or along all dimensions.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.flip(xp.asarray([[1, 2], [3, 4]]), axis=1)
        tensor([[2, 1],
                [4, 3]])
    """
    return _C.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis)


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """Move dimensions to other positions. The remaining dimensions keep their order.

    Shape:
        - Output: the sizes of `x` in the new order.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
        torch.Size([3, 4, 2])
    """
    return _C.movedim(x, source, destination)


@overridable
def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """Permute the dimensions of a tensor.

    Args:
        x: the tensor.
        axes: the dimensions in their new order.

    Shape:
        - Output: the sizes of the input in the new order.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
        torch.Size([4, 2, 3])
    """
    return x.permute(axes)


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: bool | None = None) -> Tensor:
    """Return a tensor with the given shape, as a view if possible, unless `copy` is True.

    Args:
        x: the tensor.
        shape: the sizes; a size of -1 is computed from the other sizes.
        copy: True always copies, False never copies, and None copies only if the strides of `x` require it.

    Shape:
        - Output: `shape`; the product of its sizes must be the number of elements of `x`.

    Raises:
        ValueError: `copy` is False, and the strides of `x` require a copy.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.reshape(xp.arange(6), (2, -1))
        tensor([[0, 1, 2],
                [3, 4, 5]])
    """
    if copy is not False:
        made = _C.reshape(x, shape)
        return made.clone() if copy and made.data_ptr() == x.data_ptr() else made
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape(copy=False): a copy is needed: {error}") from None


@overridable
def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element, or each slice along a dimension.

    Args:
        x: the tensor.
        repeats: the number of repetitions, either one number for all slices or a number for each slice.
        axis: the dimension; None repeats the elements of the flattened tensor.

    Shape:
        - Output: the shape of the input, except that the size of dimension `axis` is multiplied by `repeats`,
          or is the sum of `repeats` if each slice has its own number. If `axis` is None: (m), where m is the
          total number of elements after the repetition.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.repeat(xp.asarray([1, 2]), 2)
        tensor([1, 1, 2, 2])
    """
    return _C.repeat_interleave(x, repeats, axis)


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """Shift the elements by `shift` along `axis`, or in the flattened tensor if `axis` is None.

    Elements that are shifted beyond one end reappear at the other end.

    Shape:
        - Input and output: (*).

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.roll(xp.arange(4), 1)
        tensor([3, 0, 1, 2])
    """
    if axis is None:
        return _C.roll(x, shift)
    axes = (axis,) if isinstance(axis, int) else axis
    return _C.roll(x, (shift,) * len(axes) if isinstance(shift, int) else shift, axes)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """Remove the dimensions `axis`, whose sizes must be 1.

    Shape:
        - Output: the shape of `x` without the dimensions in `axis`.

    Raises:
        ValueError: the size of a dimension in `axis` is not 1.
        IndexError: a dimension in `axis` is out of range.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.squeeze(xp.ones((1, 3, 1)), axis=0).shape
        torch.Size([3, 1])
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    wrong = [one for one in axes if x.shape[one] != 1]
    if wrong:
        raise ValueError(
            f"squeeze(axis): dimension {wrong[0]} of shape {tuple(x.shape)} must have the size 1"
        )
    return _C.squeeze(x, axes)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join tensors of equal shape along a new dimension.

    Shape:
        - Inputs: tensors of the same shape (*).
        - Output: the shape of the inputs with a new dimension at `axis`, whose size is the number of tensors.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.stack([xp.zeros(2), xp.ones(2)])
        tensor([[0., 0.],
                [1., 1.]])
    """
    return _C.stack(list(arrays), axis)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """Repeat `x` along dimension i `repetitions[i]` times.

    Shape:
        - Output: each size of `x` times the corresponding number in `repetitions`. If the shape of `x` and
          `repetitions` differ in length, the shorter one is first padded with leading ones.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.tile(xp.asarray([1, 2]), (2, 2))
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    return _C.tile(x, repetitions)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return the slices at `indices` along `axis`; negative indices count from the end.

    `axis` may be omitted for tensors of one dimension.

    Shape:
        - Input: `indices` (k).
        - Output: the shape of `x` with size k along `axis`.

    Raises:
        ValueError: `axis` is not given, and `x` does not have one dimension.
        IndexError: an index is out of range.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.take(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1, 0]), axis=0)
        tensor([[3, 4],
                [3, 4],
                [1, 2]])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take(axis): must be given for a tensor of {x.ndim} dimensions")
        axis = 0
    return x[(slice(None),) * (axis % x.ndim) + (indices,)]


@overridable
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the elements at `indices` along `axis`; negative indices count from the end.

    Shape:
        - Inputs: `x` and `indices` have the same number of dimensions, and broadcast in all dimensions except `axis`.
        - Output: the broadcast shape, with the size of `indices` along `axis`.

    Example:
        >>> import rushlight.array_api as xp
        >>> x = xp.asarray([[3, 1, 2]])
        >>> xp.take_along_axis(x, xp.argsort(x))
        tensor([[1, 2, 3]])
    """
    positions = indices.to(_C.int64)
    positions = _C.where(positions < 0, positions + x.shape[axis], positions)
    return _C.take_along_dim(x, positions, axis)


@overridable
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of a tensor along a dimension, as a tuple.

    Args:
        x: the tensor.
        axis: the dimension.

    Shape:
        - Outputs: the shape of the input without the dimension `axis`.

    Example:
        >>> import rushlight.array_api as xp
        >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))
    """
    return tuple(x.unbind(axis))
