"""Methods of Tensor that are written in Python. This module is imported when one of them is first called."""

from __future__ import annotations

from typing import Any, NoReturn

from . import _C
from ._C import Tensor


def reversed_tensor(self: Tensor) -> Tensor:
    """Return a copy with the rows in reverse order: `reversed(tensor)`."""
    return self[_C.arange(len(self) - 1, -1, -1)] if self.dim() else self


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Return a copy in page-locked memory, or the tensor itself if its memory is page-locked.

    A device can copy from and to page-locked memory without using the CPU.

    Args:
        device: the device to which the memory will be copied; by default the device of the attached backend.

    Raises:
        RuntimeError: no device that uses page-locked memory is attached, or the tensor is not on the CPU.
        NotImplementedError: the backend of the device has no page-locked memory.
    """
    if self.is_pinned():
        return self
    return _C._pin_memory(self, device).copy_(self)


def record_stream(self: Tensor, s: Any) -> None:
    """Prevent the memory of the tensor from being reused before the work queued on the stream `s` is done.

    Operators and copies record the stream automatically. Call this method if other code queues work that uses
    the tensor.

    Raises:
        TypeError: `s` is not a stream.
        ValueError: the stream belongs to another device.
    """
    from ._streams import Stream

    if not isinstance(s, Stream):
        raise TypeError(f"record_stream(s): must be a Stream, not {type(s).__name__}")
    if self.device.type not in ("cpu", "meta"):
        _C._record_stream(self, s.device, s.stream_id)


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Return the dimensions in the order in which they are stored in memory, outermost first.

    Args:
        ambiguity_check: whether to raise RuntimeError if more than one order of the dimensions is possible, because a
            dimension has size 1 or two dimensions have the same stride. With a list of memory formats, a tensor with several
            possible orders is accepted if the tensor is contiguous in exactly one of these formats.
    """
    if ambiguity_check is not False:
        strides = self.stride()
        formats = ambiguity_check if isinstance(ambiguity_check, (list, tuple)) else ()
        ambiguous = 1 in self.shape or len(set(strides)) < len(strides)
        if ambiguous and sum(self.is_contiguous(memory_format=form) for form in formats) != 1:
            raise RuntimeError(
                f"dim_order(): shape {tuple(self.shape)} with strides {strides} has more than one order of dimensions"
            )
    return tuple(sorted(range(self.dim()), key=lambda d: -self.stride()[d]))


def new_tensor(
    self: Tensor,
    data: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a new tensor with a copy of `data`, by default with the dtype and on the device of this tensor."""
    return _C.tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )


def apply_(self: Tensor, callable: Any) -> Tensor:
    """Replace each element x by `callable(x)`, in place, and return the tensor.

    This method is slow, because the Python function `callable` is called once for each element.

    Raises:
        RuntimeError: the tensor requires grad.
    """
    return _replace("apply_", self, callable, self)


def map_(self: Tensor, other: Tensor, callable: Any) -> Tensor:
    """Replace each element x by `callable(x, y)`, in place, where y is the element of `other` at the same position.

    Raises:
        RuntimeError: one of the tensors requires grad, or the tensors do not broadcast.
    """
    return _replace("map_", self, callable, self, other.expand_as(self))


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Replace each element z by `callable(z, x, y)`, in place, with the elements of `x` and `y` at the same position.

    Raises:
        RuntimeError: one of the tensors requires grad, or the tensors do not broadcast.
    """
    return _replace("map2_", self, callable, self, x.expand_as(self), y.expand_as(self))


def _replace(name: str, self: Tensor, function: Any, *operands: Tensor) -> Tensor:
    if any(t.requires_grad for t in operands):
        raise RuntimeError(
            f"{name}(): a Python function cannot be differentiated, but a tensor requires grad\n"
            "hint: call detach() first, or use operators"
        )
    values = [function(*one) for one in zip(*(t.reshape(-1).tolist() for t in operands), strict=True)]
    return self.copy_(_C.tensor(values, dtype=self.dtype).view(self.shape))


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Return the tensor that replaces this tensor in a module when `other` is loaded.

    Args:
        other: the tensor of the state dict.
        assign: whether the module stores `other` itself. If False, the values of `other` are copied into this
            tensor.
    """
    return other.detach() if assign else self.copy_(other).detach()


def storage(self: Tensor) -> Any:
    """Return the tensor's memory as elements of the tensor's dtype; `untyped_storage()` returns the memory as bytes."""
    from ._typed_storage import TypedStorage

    return TypedStorage(self)


# --- gradients: rushlight-autograd replaces these methods ---


def _no_provider(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name}(): gradients are provided by another package, which is not imported\n"
        "hint: pip install rushlight-autograd, then import rushlight_autograd (or rushlight, which does)"
    )


def backward(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise RuntimeError, because gradients need the package rushlight-autograd, which is not imported."""
    _no_provider("backward")


def register_hook(self: Tensor, hook: Any) -> NoReturn:
    """Raise RuntimeError, because gradients need the package rushlight-autograd, which is not imported."""
    _no_provider("register_hook")


def retain_grad(self: Tensor) -> NoReturn:
    """Raise RuntimeError, because gradients need the package rushlight-autograd, which is not imported."""
    _no_provider("retain_grad")
