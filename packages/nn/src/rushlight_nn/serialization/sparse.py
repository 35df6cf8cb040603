"""Construct the sparse tensors of a file from their parts, and check the parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from .errors import FormatError

#: Layouts that have two tensors of indices.
COMPRESSED = (core.sparse_csr, core.sparse_csc, core.sparse_bsr, core.sparse_bsc)


def rebuild_sparse(kind: Any, parts: Any, *requires_grad: Any) -> Tensor:
    """Return the sparse tensor with this layout and these parts, after checking its indices."""
    if not isinstance(parts, tuple) or not all(isinstance(part, Tensor) for part in parts[:2]):
        raise FormatError("a sparse tensor must be built from tensors")
    if kind is core.sparse_coo and len(parts) in (3, 4):
        indices, found, shape, *coalesced = parts
        return _sparse(kind, shape, indices, None, found, coalesced == [True])
    if kind in COMPRESSED and len(parts) == 4 and isinstance(parts[2], Tensor):
        compressed, plain, found, shape = parts
        return _sparse(kind, shape, compressed, plain, found, True)
    raise FormatError(
        "it holds a sparse tensor whose layout or parts rushlight does not support\nhint: save tensor.to_dense()"
    )


def _sparse(
    kind: Any, shape: Any, indices: Tensor, plain: Tensor | None, found: Tensor, coalesced: bool
) -> Tensor:
    if not isinstance(shape, (tuple, list)) or not all(type(n) is int and 0 <= n < 1 << 59 for n in shape):
        raise FormatError("the sizes of a sparse tensor are not valid")
    unchecked = _unchecked.get()
    try:
        made = core._C._sparse_make(
            "load", str(kind), tuple(shape), indices, plain, found, coalesced, unchecked is None
        )
    except (RuntimeError, TypeError) as error:
        raise FormatError(f"the parts of a sparse tensor do not fit each other: {error}") from None
    if unchecked is not None:
        unchecked.append(made)
    return made


# The sparse tensors whose indices are not checked yet, if storages are filled after the structure has been read.
_unchecked: ContextVar[list[Tensor] | None] = ContextVar("_unchecked", default=None)


@contextmanager
def indices_come_later() -> Iterator[list[Tensor]]:
    """Collect the sparse tensors that are made in the block, without checking their indices; see `check_indices`."""
    collected: list[Tensor] = []
    token = _unchecked.set(collected)
    try:
        yield collected
    finally:
        _unchecked.reset(token)


def check_indices(tensors: list[Tensor]) -> None:
    """Raise FormatError unless the indices of the sparse tensors are valid for their sizes."""
    for tensor in tensors:
        parts = core._C._sparse_parts(tensor)
        assert parts is not None  # the tensors are sparse
        layout, indices, plain, found, coalesced = parts
        _sparse(layout, tuple(tensor.shape), indices, plain, found, coalesced)
