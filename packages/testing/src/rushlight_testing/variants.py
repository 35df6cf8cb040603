"""Derive variants of samples: the same call on tensors of other sizes or memory layouts, or without dimensions.

A variant may be a call that the operator rejects. If the call succeeds, its result must pass the same checks
as the result of the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing.operators import map_tensors
from rushlight_testing.samples import Sample

__all__ = ["LAYOUTS", "SIZES", "one_element", "with_layout"]

# Arguments that specify dimensions. For a tensor with at most one dimension they can only be 0.
_DIMS = (
    *("dim", "dim0", "dim1", "dim2", "dims", "axis", "axis0", "axis1", "source", "destination", "dimension"),
    *("start_dim", "end_dim"),
)


def one_element(op: Op, sample: Sample, dims: int) -> Sample:
    """Return a sample whose tensors contain only the first element of each tensor of the sample.

    Elements of int32 and int64 are set to 0, since they may be indices. Arguments that specify dimensions are set to 0, too.

    Args:
        op: the operator's YAML entry.
        sample: the sample.
        dims: 1 for tensors of shape (1,), 0 for tensors of shape ().

    Example:
        >>> from rushlight_testing.operators import operators
        >>> op = next(op for op in operators() if op.name == "add")
        >>> sample = one_element(op, Sample("", (torch.ones(2, 3), torch.ones(3))), dims=1)
        >>> [tuple(t.shape) for t in sample.args]
        [(1,), (1,)]
    """

    def first(t: Any) -> Any:
        value = t.reshape(-1)[:1].clone() if t.numel() else core.ones(1, dtype=t.dtype)
        if _may_be_index(t):
            value.zero_()
        return value if dims else value.reshape(())

    def dimension(name: str, value: Any) -> Any:
        if op.aliases.get(name, name) not in _DIMS or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return 0
        return type(value)([0]) if isinstance(value, (tuple, list)) and value else value

    positional = [a.name for a in op.schema.arguments if not a.keyword_only]
    names = [positional[min(i, len(positional) - 1)] for i in range(len(sample.args))]
    args = tuple(dimension(n, v) for n, v in zip(names, sample.args, strict=True))
    kwargs = {n: dimension(n, v) for n, v in sample.kwargs.items()}
    return map_tensors(first, replace(sample, args=args, kwargs=kwargs))


def _may_be_index(t: Any) -> bool:
    return t.dtype in (core.int64, core.int32)


def _cut(length: int, dim: int | None) -> Callable[[Any], Any]:
    """Return a function that copies the first `length` elements along `dim`, or along all dimensions.

    Copies of int32 and int64 tensors are set to 0, since they may contain indices.
    """

    def cut(t: Any) -> Any:
        if t.dim() == 0:
            return t.clone()
        kept = (
            tuple(slice(0, length) for _ in range(t.dim()))
            if dim is None
            else (*[slice(None)] * (dim % t.dim()), slice(0, length))
        )
        value = t[kept].clone()
        return value.zero_() if length and _may_be_index(t) else value

    return cut


def _dense(t: Any) -> Any:
    return t.contiguous()


# Sizes of 1 and 0, which kernels and views may treat as special cases.
SIZES: dict[str, Callable[[Any], Any]] = {
    "dense": _dense,
    "one element": _cut(1, None),
    "first dimension of 1": _cut(1, 0),
    "last dimension of 1": _cut(1, -1),
    "first dimension of 0": _cut(0, 0),
    "last dimension of 0": _cut(0, -1),
}


# --- addresses ---


def _gaps(t: Any) -> Any:
    return core.stack([t, t], -1).select(-1, 0) if t.dim() else core.stack([t, t])[0]


def _offset(t: Any) -> Any:
    flat = t.reshape(-1)
    return core.cat([flat[:1], flat, flat[:1]])[1:-1].view(t.shape) if t.numel() else t


def _transposed(t: Any) -> Any:
    """Return a copy whose first dimension has stride 1."""
    order = list(reversed(range(t.dim())))
    return t.permute(order).contiguous().permute(order) if t.dim() else t


def _expanded(t: Any) -> Any:
    """Return a view that repeats the first element along the first dimension, with stride 0."""
    return t[:1].clone().expand(t.shape) if t.dim() and t.numel() else t


def _windows(t: Any) -> Any:
    """Return a tensor whose rows overlap in memory: each row shares elements with the rows above it."""
    if t.dim() < 2 or t.numel() == 0:
        return t
    rows, columns = t.shape[-2], t.shape[-1]
    line = t.reshape(-1)[: rows + columns - 1].clone()
    if line.numel() < rows + columns - 1:
        return t
    return line.as_strided((rows, columns), (1, 1)).expand(t.shape)


def _channels_last(t: Any) -> Any:
    """Return a copy of a batch of images or volumes in the channels-last format, and other tensors unchanged."""
    formats = {4: core.channels_last, 5: core.channels_last_3d}
    return t.clone(memory_format=formats[t.dim()]) if t.dim() in formats else t


# Functions that return a tensor of the same shape and dtype in another layout. It may contain fewer different values;
# the dense copy then has the same values.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "gaps": _gaps,
    "offset": _offset,
    "transposed": _transposed,
    "expanded": _expanded,
    "windows": _windows,
    "channels last": _channels_last,
}


def with_layout(
    sample: Sample, layout: Callable[[Any], Any], written: Collection[int] = ()
) -> tuple[Sample, Sample]:
    """Return two samples with the same values: one whose tensors have the layout, and one with dense tensors.

    Args:
        sample: the sample.
        layout: a function that returns a tensor in another layout; see `LAYOUTS`.
        written: the positions of the arguments that the call modifies in place. `layout` is not applied to
            them, and they share no memory with other arguments.

    Example:
        >>> placed, dense = with_layout(Sample("", (torch.ones(2, 3),)), LAYOUTS["gaps"])
        >>> placed.args[0].is_contiguous(), dense.args[0].is_contiguous()
        (False, True)
    """
    placed = replace(
        sample,
        args=tuple(v if i in written else map_tensors(layout, v) for i, v in enumerate(sample.args)),
        kwargs={name: map_tensors(layout, v) for name, v in sample.kwargs.items()},
    )
    dense = map_tensors(lambda t: t.clone(memory_format="contiguous"), placed)
    if written:
        placed = replace(
            placed, args=tuple(_own(v) if i in written else v for i, v in enumerate(placed.args))
        )
    return placed, dense


def _own(value: Any) -> Any:
    return map_tensors(lambda t: t.clone(), value)
