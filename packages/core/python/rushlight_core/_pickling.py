"""Pickling and copying. Tensors that share memory still share it after they are pickled or copied together."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from . import _C
from ._C import Tensor, UntypedStorage

# Note [Pickles]
# A tensor is pickled as its storage and its geometry (sizes, strides and offset). If several tensors share a storage, pickle
# stores it once, because pickle recognises objects by identity. With protocol 5, the bytes are a PickleBuffer, which
# `buffer_callback` can take out of band without a copy.


def reduce_tensor(self: Tensor, protocol: Any) -> tuple[Any, ...]:
    """Return the function and arguments from which pickle rebuilds a tensor. Implements `Tensor.__reduce_ex__`."""
    with _C.DisableTorchFunctionSubclass():
        plain = self.detach()
    state = dict(self._attributes() or {})
    made: tuple[Any, ...]
    if (parts := _C._sparse_parts(plain)) is not None:
        made = (_rebuild_sparse, (*parts, tuple(plain.shape), self.requires_grad))
    elif self.device.type == "cpu":
        _C._require_values("pickle", plain)
        geometry = (plain.dtype, tuple(plain.shape), plain.stride(), plain.storage_offset())
        made = (_rebuild_tensor, (plain.untyped_storage(), *geometry, self.requires_grad))
    elif self.device.type == "meta":
        made = (_rebuild_meta, (plain.dtype, tuple(plain.shape), plain.stride(), self.requires_grad))
    else:
        made = (_rebuild_on_device, (plain.cpu(), str(self.device), self.requires_grad))
    if type(self) is Tensor and not state:
        return made
    return _rebuild_subclass, (type(self), made, state)


def reduce_storage(self: UntypedStorage, protocol: int) -> tuple[Any, ...]:
    """Return the function and arguments from which pickle rebuilds a storage. Implements `UntypedStorage.__reduce_ex__`."""
    data = pickle.PickleBuffer(self) if protocol >= 5 else bytes(self)
    return _rebuild_storage, (data,)


def _rebuild_storage(data: Any) -> UntypedStorage:
    # Bytes from inside of a pickle are copied to new memory, which is aligned and can be resized. Out-of-band buffers are
    # used without a copy.
    copied = isinstance(data, (bytes, bytearray))
    return _C._from_array(memoryview(data).cast("B"), copied).untyped_storage()


def _rebuild_tensor(
    storage: UntypedStorage, dtype: Any, size: Any, stride: Any, offset: int, requires_grad: bool
) -> Tensor:
    tensor = _C._tensor_over(storage, dtype, size, stride, offset)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    tensor = _C.empty_strided(size, stride, dtype=dtype, device="meta")
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_sparse(
    layout: str,
    indices: Tensor,
    plain: Tensor | None,
    values: Tensor,
    coalesced: bool,
    size: Any,
    requires_grad: bool,
) -> Tensor:
    tensor = _C._sparse_make("unpickled sparse tensor", layout, size, indices, plain, values, coalesced, True)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_on_device(host: Tensor, device: str, requires_grad: bool) -> Tensor:
    tensor = host.to(device)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_subclass(kind: type, made: tuple[Any, Any], state: dict[str, Any]) -> Tensor:
    rebuild, args = made
    *most, requires_grad = args
    tensor = rebuild(*most, False)
    if kind is not Tensor:
        tensor = tensor.as_subclass(kind)
    if state:
        tensor.__dict__.update(state)
    return tensor.requires_grad_() if requires_grad else tensor


def deepcopy_tensor(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """Return a deep copy of a leaf tensor, with its attributes and its `grad`. Implements `Tensor.__deepcopy__`.

    Raise RuntimeError for a tensor that is not a leaf, because a copy would not be connected to the autograd
    graph.
    """
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "deepcopy(): only leaves can be copied, but this tensor was computed from tensors that require "
            "grad\n"
            "hint: copy tensor.detach(), or use tensor.clone() to stay in the graph"
        )
    with _C.DisableTorchFunctionSubclass():
        plain = self.detach()
        if _C._sparse_parts(plain) is not None:
            made = plain.clone()
        elif self.device.type == "cpu":
            _C._require_values("copy.deepcopy()", plain)
            storage = copy.deepcopy(plain.untyped_storage(), memo)
            offset = plain.storage_offset()
            made = _C._tensor_over(storage, plain.dtype, tuple(plain.shape), plain.stride(), offset)
        else:
            made = plain.clone()
        if type(self) is not Tensor:
            made = made.as_subclass(type(self))
        if self.requires_grad:
            made.requires_grad_()
        memo[id(self)] = made
        if self._attributes():
            made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        if self.grad is not None:
            made.grad = copy.deepcopy(self.grad, memo)
    return made
