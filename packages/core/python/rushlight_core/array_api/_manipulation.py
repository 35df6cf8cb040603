"""Functions of shapes, and of places of elements, of the array API standard."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _C
from .._array_api import broadcast_arrays as broadcast_arrays
from .._array_api import permute_dims as permute_dims
from .._array_api import repeat as repeat
from .._array_api import unstack as unstack
from .._C import Tensor

Axes = int | tuple[int, ...]


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """`x` expanded to a shape."""
    return _C.broadcast_to(x, shape)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that others broadcast to.

    Raises:
        ValueError: there is none.
    """
    from .._shapes import broadcast_shapes as common

    try:
        return tuple(common(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors behind one another along `axis`, or flattened."""
    return _C.cat([x.reshape(-1) for x in arrays], 0) if axis is None else _C.cat(list(arrays), axis)


def expand_dims(x: Tensor, /, axis: Axes = 0) -> Tensor:
    """Dimensions of size 1 more, at the places `axis` of the result.

    Raises:
        IndexError: a place is none of the result's dimensions.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    count = x.ndim + len(axes)
    if any(not -count <= one < count for one in axes) or len({one % count for one in axes}) != len(axes):
        raise IndexError(
            f"expand_dims(axis): got {axis}, needs different ones of the result's {count} dimensions"
        )
    for one in sorted(one % count for one in axes):
        x = x.unsqueeze(one)
    return x


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """Return the elements in reverse order along `axis`, or along all dimensions."""
    return _C.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis)


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """Dimensions moved to other places, and the others kept in order."""
    return _C.movedim(x, source, destination)


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape, where one size may be -1; a view where that is possible, unless `copy`.

    Raises:
        ValueError: `copy` is False, and the strides of `x` need one.
    """
    if copy is not False:
        made = _C.reshape(x, shape)
        return made.clone() if copy and made.data_ptr() == x.data_ptr() else made
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape(copy): False, where a copy is needed: {error}") from None


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """Return the elements moved by `shift` along `axis`, or among the flattened elements.

    Elements that leave one end enter at the other.
    """
    if axis is None:
        return _C.roll(x, shift)
    axes = (axis,) if isinstance(axis, int) else axis
    return _C.roll(x, (shift,) * len(axes) if isinstance(shift, int) else shift, axes)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """`x` without dimensions of size 1.

    Raises:
        ValueError: one of `axis` has another size.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    wrong = [one for one in axes if x.shape[one] != 1]
    if wrong:
        raise ValueError(
            f"squeeze(axis): dimension {wrong[0]} of shape {tuple(x.shape)} must have the size 1"
        )
    return _C.squeeze(x, axes)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension."""
    return _C.stack(list(arrays), axis)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """`x` several times along each dimension."""
    return _C.tile(x, repetitions)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return the slices at `indices` along `axis`; negative indices count from the end.

    `axis` may be left out for tensors of one dimension.
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take(axis): must be given for a tensor of {x.ndim} dimensions")
        axis = 0
    return x[(slice(None),) * (axis % x.ndim) + (indices,)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the elements at `indices` along `axis`; negative ones count from the end."""
    places = indices.to(_C.int64)
    places = _C.where(places < 0, places + x.shape[axis], places)
    return _C.take_along_dim(x, places, axis)
