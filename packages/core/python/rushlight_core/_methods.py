"""Methods of Tensor that need Python; imported when one of them is first called."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from . import _C
from ._C import Tensor


def reversed_tensor(self: Tensor) -> Tensor:
    """`reversed(tensor)`: its rows in the other order."""
    return self[_C.arange(len(self) - 1, -1, -1)] if self.dim() else self


# PyTorch's old names of types, one for each dtype and device.
_TYPE_NAMES = {
    _C.float32: "FloatTensor",
    _C.float64: "DoubleTensor",
    _C.float16: "HalfTensor",
    _C.bfloat16: "BFloat16Tensor",
    _C.uint8: "ByteTensor",
    _C.int8: "CharTensor",
    _C.int16: "ShortTensor",
    _C.int32: "IntTensor",
    _C.int64: "LongTensor",
    _C.bool: "BoolTensor",
    _C.uint16: "UInt16Tensor",
    _C.uint32: "UInt32Tensor",
    _C.uint64: "UInt64Tensor",
    _C.complex64: "ComplexFloatTensor",
    _C.complex128: "ComplexDoubleTensor",
}
_DTYPES_BY_NAME = {name: dtype for dtype, name in _TYPE_NAMES.items()}


def type_of(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, "torch.FloatTensor"; with a `dtype` (or such a name), the tensor converted to it.

    Raises:
        TypeError: `dtype` is neither a dtype nor a str.
        ValueError: there is no type of this name.
    """
    if dtype is None:
        module = "torch" if self.device.type == "cpu" else f"torch.{self.device.type}"
        return f"{module}.{_TYPE_NAMES[self.dtype]}"
    if not isinstance(dtype, (_C.dtype, str)):
        from ._legacy import dtype_of_type

        dtype = dtype_of_type(dtype) or dtype
    if isinstance(dtype, _C.dtype):
        return self.to(dtype, non_blocking)
    if not isinstance(dtype, str):
        raise TypeError(f"type(dtype): must be a dtype or str, not {type(dtype).__name__}")
    module, _, name = dtype.rpartition(".")
    device = "cpu" if module == "torch" else module.removeprefix("torch.")
    if name not in _DTYPES_BY_NAME or device not in ("cpu", "cuda"):
        raise ValueError(
            f"type(dtype): got {dtype!r}, needs a name such as 'torch.FloatTensor'\n"
            "hint: a dtype, as in type(torch.float32), says the same"
        )
    return self.to(device, _DTYPES_BY_NAME[name], non_blocking)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in page-locked memory, between which and a device copies need no help of the host; self where it is there.

    Args:
        device: for which device's copies; for those of the backend that is attached unless said otherwise.

    Raises:
        RuntimeError: there is no device, or the tensor is not on the CPU.
        NotImplementedError: the device's backend locks no memory.
    """
    if self.is_pinned():
        return self
    return _C._pin_memory(self, device).copy_(self)


def record_stream(self: Tensor, s: Any) -> None:
    """Says that work on the stream `s` uses the tensor: its memory is not reused before that work is done.

    Operators and copies say so themselves; this is for work that core does not see.

    Raises:
        ValueError: the stream is another device's.
    """
    from ._streams import Stream

    if not isinstance(s, Stream):
        raise TypeError(f"record_stream(s): must be a Stream, not {type(s).__name__}")
    if self.device.type not in ("cpu", "meta"):
        _C._record_stream(self, s.device, s.stream_id)


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions in the order in which they lie in memory, outermost first.

    Args:
        ambiguity_check: raise RuntimeError where another order would do as well, because a dimension has size one or
            two have the same stride. A list of memory formats allows such a tensor if it is in exactly one of them.
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


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself where it is dense, else a dense tensor of the same values; converted where a `dtype` is given."""
    from ._sparse import to_dense

    return to_dense(self, dtype, masked_grad=masked_grad)


def new_tensor(
    self: Tensor,
    data: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`, of the dtype and on the device of this one unless said otherwise."""
    return _C.tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )


def apply_(self: Tensor, callable: Any) -> Tensor:
    """Replaces each element x by `callable(x)`, in place. Slow, as Python is; meant for small tensors on the CPU.

    Raises:
        RuntimeError: the tensor requires grad.
    """
    return _replace("apply_", self, callable, self)


def map_(self: Tensor, other: Tensor, callable: Any) -> Tensor:
    """Replaces each element x by `callable(x, y)`, y of `other`, which broadcasts, in place. Slow, as Python is.

    Raises:
        RuntimeError: one of the tensors requires grad, or they do not broadcast.
    """
    return _replace("map_", self, callable, self, other.expand_as(self))


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Replaces each element z by `callable(z, x, y)`, x and y of tensors that broadcast, in place. Slow, as Python is.

    Raises:
        RuntimeError: one of the tensors requires grad, or they do not broadcast.
    """
    return _replace("map2_", self, callable, self, x.expand_as(self), y.expand_as(self))


def _replace(name: str, self: Tensor, function: Any, *operands: Tensor) -> Tensor:
    if any(t.requires_grad for t in operands):
        raise RuntimeError(
            f"{name}(): a Python function cannot be differentiated, and the tensor requires grad\n"
            "hint: write detach() before it, or use operators"
        )
    values = [function(*one) for one in zip(*(t.reshape(-1).tolist() for t in operands), strict=True)]
    return self.copy_(_C.tensor(values, dtype=self.dtype).view(self.shape))


def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """`new(data)`, `new(2, 3)`, `new()`: as the type of the tensor makes them, of its dtype and on its device.

    The older form of `new_tensor` and `new_empty`; sizes leave the values arbitrary.
    """
    if len(args) == 1 and not isinstance(args[0], (int, _C.Size)):
        return self.new_tensor(args[0].detach() if isinstance(args[0], Tensor) else args[0], device=device)
    sizes = tuple(args[0]) if len(args) == 1 and isinstance(args[0], _C.Size) else args or (0,)
    return _C.empty(sizes, dtype=self.dtype, device=self.device if device is None else device)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What takes this tensor's place in a module when `other` is loaded into it: this one with its values, or itself.

    Args:
        other: of a state dict.
        assign: whether the module takes over the state's own tensors.
    """
    return other.detach() if assign else self.copy_(other).detach()


def storage(self: Tensor) -> Any:
    """The tensor's memory as elements of its dtype; `untyped_storage()` has the bytes."""
    from ._legacy import TypedStorage

    return TypedStorage(self)


# --- gradients: rushlight-autograd puts its own methods in the place of these ---


def _no_provider(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name}(): gradients are computed by a package of their own, which is not imported\n"
        "hint: pip install rushlight-autograd, then import rushlight_autograd (or rushlight, which does)"
    )


def backward(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError that names the package to install."""
    _no_provider("backward")


def register_hook(self: Tensor, hook: Any) -> NoReturn:
    """Raises RuntimeError that names the package to install."""
    _no_provider("register_hook")


def retain_grad(self: Tensor) -> NoReturn:
    """Raises RuntimeError that names the package to install."""
    _no_provider("retain_grad")


# --- shared memory: the transport that is installed ---


def shared_memory_package() -> Any:
    """Return the package that moves tensors to shared memory. Raises RuntimeError if it is not installed."""
    # By name: core knows of no package that builds on it.
    name = "rushlight_multiprocessing"
    try:
        return import_module(name)
    except ImportError as error:
        if error.name != name:
            raise
        raise RuntimeError(
            "share_memory_(): shared memory comes with a package of its own\n"
            "hint: pip install rushlight-multiprocessing"
        ) from None


def share_memory_(self: Tensor) -> Tensor:
    """Moves the data to shared memory, in place; returns self. A tensor on a GPU stays as it is."""
    return self if self.is_cuda else shared_memory_package().share_memory_(self)


def is_shared(self: Tensor) -> bool:
    """Whether the data is in shared memory."""
    import sys

    # What was never imported has shared nothing.
    package = sys.modules.get("rushlight_multiprocessing")
    return self.is_cuda or (package is not None and package.is_shared(self))
