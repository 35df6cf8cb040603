"""Create tensors from arrays, buffers and other sequences. Numbers and lists of numbers are converted in C++."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from . import _C
from ._C import Tensor, UntypedStorage, dtype
from ._storages import tensor_of_bytes


def tensor(
    data: Any,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a new tensor with a copy of `data`."""
    device = _C._default_device() if device is None else device
    if isinstance(data, Tensor):
        text = "tensor(data): to copy a tensor, use data.detach().clone()"
        warnings.warn(text, UserWarning, stacklevel=2)
        with _C.DisableTorchFunctionSubclass():
            made = _convert(data.detach(), dtype, device)
            made = made.clone() if made.dtype == data.dtype and made.device == data.device else made
    else:
        made = _convert(_new(data, dtype), dtype, device)
    made = made.pin_memory() if pin_memory else made
    return made.requires_grad_() if requires_grad else made


def as_tensor(data: Any, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Convert `data` to a tensor, sharing its memory and preserving its autograd graph if possible.

    An object of a subclass of `Tensor` that need not be converted is returned unchanged; otherwise the result is a plain
    `Tensor`.
    """
    device = _C._default_device() if device is None else device
    if isinstance(data, Tensor):
        return _convert(data, dtype, device)
    shared = _from_protocol(data)
    return _convert(shared if shared is not None else _new(data, dtype), dtype, device)


def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Convert `obj` to a tensor, as the array API standard specifies.

    Args:
        obj: a tensor, an array, a DLPack capsule or exporter, a buffer, a number, or nested sequences of numbers.
        dtype: the dtype, by default the dtype of `obj`.
        device: the device. The default is the device that `set_default_device` or a `with device:` block selects, if any,
            and otherwise the device of `obj`.
        copy: True always copies. False never copies, and raises ValueError if a copy is needed. None copies if necessary.
        requires_grad: whether autograd records operations on the tensor. None preserves `requires_grad` and
            the autograd graph of `obj`.

    Shape:
        - Output: the shape of `obj`.

    Raises:
        ValueError: a copy is needed and `copy` is False.

    Example:
        >>> import numpy as np
        >>> array = np.zeros(2)
        >>> tensor = torch.asarray(array)  # shares the memory
        >>> tensor[0] = 1.0
        >>> float(array[0])
        1.0
    """
    source: Tensor | None
    device = _C._default_device() if device is None else device
    if isinstance(obj, Tensor):
        source = obj
    elif isinstance(obj, (bytes, bytearray, memoryview)) and dtype is not None:
        source = _C.frombuffer(obj, dtype=dtype)
    elif isinstance(obj, UntypedStorage):
        source = tensor_of_bytes(obj)
    else:
        source = _from_protocol(obj)
    if source is None:
        if copy is False:
            raise ValueError(
                f"asarray(obj, copy): {type(obj).__name__} has no memory to share, and copy=False forbids a copy"
            )
        made = _convert(_new(obj, dtype), dtype, device)
    else:
        made = _convert(source, dtype, device)
        if made is source and copy:
            with _C.DisableTorchFunctionSubclass():
                made = source.clone()
        elif made is not source and copy is False:
            raise ValueError(
                "asarray(obj, copy): another dtype or device requires a copy, and copy=False forbids it"
            )
    if requires_grad is None:
        return made
    with _C.DisableTorchFunctionSubclass():
        if made.requires_grad == requires_grad:
            return made
        if not requires_grad:
            return made.detach()
        return (made.detach() if made is obj else made).requires_grad_()


def legacy_tensor(*args: Any, device: Any = None) -> Tensor:
    """Return an uninitialised tensor (`Tensor(2, 3)`), or a copy of data in the default dtype (`Tensor(data)`).

    If the data is a tensor, the result is a view of it, of class `Tensor`.
    """
    if device is not None and str(device) != "cpu":
        raise RuntimeError(
            f"Tensor(device): must be 'cpu', got {device!r}\nhint: use tensor(..., device=...)"
        )
    if len(args) == 1:
        (data,) = args
        if isinstance(data, Tensor):
            with _C.DisableTorchFunctionSubclass():
                return data.view_as(data)
        if isinstance(data, _C.Size):
            return _C.empty(tuple(data))
        if not isinstance(data, int) or isinstance(data, bool):
            return tensor(data, dtype=_C.get_default_dtype())
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in args):
        kinds = ", ".join(type(a).__name__ for a in args)
        raise TypeError(
            f"Tensor(): needs data, or sizes that are ints, got ({kinds})\nhint: use tensor(data)"
        )
    return _C.empty(args or (0,))


def _convert(t: Tensor, dtype: dtype | None, device: Any) -> Tensor:
    """Return `t` itself, or a plain tensor of another dtype or on another device, without calling `__torch_function__`."""
    with _C.DisableTorchFunctionSubclass():
        if dtype is not None and t.dtype is not dtype:
            t = t.to(dtype)
        if device is not None and _C.device(device) != t.device:
            t = t.to(device=device)
        return t


def _from_protocol(data: Any) -> Tensor | None:
    """Return a tensor that shares the memory of an array-like object, or None if the object does not expose its memory."""
    kind = type(data)
    if _is_number(data) or isinstance(data, (list, tuple, str)):
        return None
    if isinstance(data, (bytes, bytearray)):
        return None if not data else _C.frombuffer(data, dtype=_C.uint8)
    if isinstance(data, memoryview) or _is_array(data):
        return _C._from_array(data, None)
    if type(data).__name__ == "PyCapsule" or hasattr(kind, "__dlpack__"):
        return _C.from_dlpack(data)
    try:
        with memoryview(data):
            return _C._from_array(data, None)
    except TypeError:
        pass
    if hasattr(kind, "__array_interface__") or hasattr(kind, "__array__"):
        import numpy as np

        return _C._from_array(np.asarray(data), None)
    return None


def _new(data: Any, dtype: dtype | None) -> Tensor:
    """Convert `data` to a tensor in new memory."""
    if isinstance(data, (int, float)) or _is_number(data):
        return _C._from_sequence(data, dtype)
    shared = _from_protocol(data)
    if shared is not None:
        return shared.clone()
    return _C._from_sequence(_plain(data), dtype)


def _plain(data: Any) -> Any:
    """Convert nested sequences of any kind to nested lists."""
    if isinstance(data, (int, float, complex, Tensor)) or _is_number(data):
        return data
    if isinstance(data, (str, bytes)):
        raise TypeError(f"tensor(data): cannot make elements from {type(data).__name__}")
    if isinstance(data, (list, tuple)):
        return [_plain(item) for item in data]
    if _is_array(data):
        return [_plain(item) for item in data] if data.ndim else data[()]
    kind = type(data)
    if hasattr(kind, "__len__") and hasattr(kind, "__getitem__") and not isinstance(data, (dict, set)):
        return [_plain(data[i]) for i in range(len(data))]
    raise TypeError(f"tensor(data): cannot make a tensor from {kind.__name__}")


def _is_array(data: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(data, numpy.ndarray)


def _is_number(data: Any) -> bool:
    """Return whether an object is a Python number or a NumPy scalar. NumPy scalars expose a buffer, but are not arrays."""
    numpy = sys.modules.get("numpy")
    return isinstance(data, (int, float, complex)) or (numpy is not None and isinstance(data, numpy.generic))
