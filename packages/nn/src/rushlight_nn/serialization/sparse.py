"""Construct the sparse tensors of a file from their parts, and check the parts."""

from __future__ import annotations

from functools import partial

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from .deferred import are_bytes_missing, defer
from .errors import FormatError

#: Layouts that have two tensors of indices.
COMPRESSED = (core.sparse_csr, core.sparse_csc, core.sparse_bsr, core.sparse_bsc)


def rebuild_sparse(kind: Any, parts: Any, *requires_grad: Any) -> Tensor:
    """Return the sparse tensor with the given layout and parts, after checking its indices."""
    if not isinstance(parts, tuple) or not all(isinstance(part, Tensor) for part in parts[:2]):
        raise FormatError("the indices or values of a sparse tensor in the file are not tensors")
    if kind is core.sparse_coo and len(parts) in (3, 4):
        indices, found, shape, *coalesced = parts
        return _sparse(kind, shape, indices, None, found, coalesced == [True])
    if kind in COMPRESSED and len(parts) == 4 and isinstance(parts[2], Tensor):
        compressed, plain, found, shape = parts
        return _sparse(kind, shape, compressed, plain, found, True)
    raise FormatError(
        "the file holds a sparse tensor whose layout or parts rushlight does not support\nhint: save tensor.to_dense()"
    )


def _sparse(
    kind: Any, shape: Any, indices: Tensor, plain: Tensor | None, found: Tensor, coalesced: bool
) -> Tensor:
    if not isinstance(shape, (tuple, list)) or not all(type(n) is int and 0 <= n < 1 << 59 for n in shape):
        raise FormatError("the sizes of a sparse tensor are not valid")

    try:
        made = core._C._sparse_make(
            "load", str(kind), tuple(shape), indices, plain, found, coalesced, not are_bytes_missing()
        )
    except (RuntimeError, TypeError) as error:
        raise FormatError(
            f"the indices, values and sizes of a sparse tensor do not fit each other: {error}"
        ) from None
    defer(partial(_check_indices, made))
    return made


def _check_indices(tensor: Tensor) -> None:
    """Raise FormatError unless the indices of the sparse tensor are valid for its sizes.

    The bytes of the indices must have been read from the file before this call.
    """
    parts = core._C._sparse_parts(tensor)
    assert parts is not None  # the tensor is sparse
    layout, indices, plain, found, coalesced = parts
    _sparse(layout, tuple(tensor.shape), indices, plain, found, coalesced)
