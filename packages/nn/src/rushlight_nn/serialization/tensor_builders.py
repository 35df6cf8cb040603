"""Functions that a pickle calls to make tensors, parameters, and the devices, sizes and layouts of tensors."""

from __future__ import annotations

from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any, NoReturn
from ..parameter import Buffer, Parameter
from . import trust
from .deferred import defer
from .dtypes import LAYOUTS
from .errors import Budget, FormatError
from .geometry import check_geometry, tensor_over
from .sparse import rebuild_sparse


def _check_flags(tensor: Tensor, requires_grad: Any) -> bool:
    if type(requires_grad) is not bool:
        raise FormatError(
            f"requires_grad of a tensor must be True or False, got {type(requires_grad).__name__}"
        )
    if requires_grad and not (tensor.is_floating_point() or tensor.is_complex()):
        raise FormatError(
            f"a tensor of dtype {tensor.dtype} has requires_grad=True, but only floating-point and complex tensors "
            "can require gradients: the file is damaged"
        )
    return requires_grad


def _rebuild(
    budget: Budget, storage: Any, dtype: Any, offset: Any, size: Any, stride: Any, grad: Any, metadata: Any
) -> Tensor:
    stored = tensor_over(storage, dtype, size, stride, offset)
    flags = metadata if isinstance(metadata, dict) else {}
    conj, neg = bool(flags.get("conj")), bool(flags.get("neg"))
    if conj or neg:  # the tensor is computed in new memory, which may be larger than its storage
        budget.charge(stored.nbytes)

    def resolve() -> Tensor:
        tensor = stored.conj() if conj else stored
        return tensor.neg() if neg else tensor

    @core.no_grad()
    def fill() -> None:
        tensor.copy_(resolve())

    tensor = resolve()
    if tensor is not stored:
        defer(fill)
    return tensor.requires_grad_() if _check_flags(tensor, grad) else tensor


def _typed(storage: Any) -> Any:
    if type(storage) is not core.TypedStorage:
        raise FormatError("a tensor is not built from a TypedStorage: the file is damaged")
    return storage


def rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    storage = _typed(storage)
    return tensor_over(storage.untyped(), storage.dtype, size, stride, offset)


def rebuild_tensor_v2(
    budget: Budget,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    grad: Any,
    hooks: Any,
    metadata: Any = None,
) -> Tensor:
    return _rebuild(budget, _typed(storage).untyped(), storage.dtype, offset, size, stride, grad, metadata)


def rebuild_tensor_v3(
    budget: Budget,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    if type(storage) is not core.UntypedStorage:
        raise FormatError("a tensor is not built from an UntypedStorage: the file is damaged")
    if dtype == core.bool:  # storages of bools are checked when they are read
        raise FormatError("a tensor of bools is not built from a storage of bools: the file is damaged")
    return _rebuild(budget, storage, dtype, offset, size, stride, grad, metadata)


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Parameter:
    if not isinstance(data, Tensor):
        raise FormatError(f"a parameter must be built from a tensor, got {type(data).__name__}")
    parameter = Parameter(data.detach(), requires_grad=_check_flags(data, requires_grad))
    if state:
        set_attributes(parameter, state)
    return parameter


def rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    check_geometry(size, stride, 0)
    if not isinstance(dtype, core.dtype):
        raise FormatError(f"a tensor has dtype {dtype}, which rushlight-core does not support")
    tensor = core.empty_strided(list(size), list(stride), dtype=dtype, device="meta")
    return tensor.requires_grad_() if _check_flags(tensor, requires_grad) else tensor


def rebuild_on_device(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    raise FormatError(
        f"a tensor was saved in a format that only the device {device!s:.40} has\nhint: save tensor.cpu()"
    )


def rebuild_typed(budget: Budget, function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    if not any(function is one for one in _TENSORS) or type(arguments) is not tuple:
        raise FormatError("a tensor is built by a function that does not return tensors")
    tensor = function(budget, *arguments) if function in OF_BUDGET else function(*arguments)
    if isinstance(state, dict) and state.get("_is_buffer") is True and kind is Tensor:
        buffer = Buffer(tensor.detach(), persistent=state.get("persistent") is not False)
        return buffer.requires_grad_(tensor.requires_grad)
    if kind not in (Tensor, Parameter):
        if not (isinstance(kind, type) and issubclass(kind, Tensor) and trust.is_allowed(kind)):
            raise FormatError(f"a tensor is of the class {kind!r:.80}, which is not allowed")
        tensor = tensor.as_subclass(kind)
    if state:
        set_attributes(tensor, state)
    return tensor


def refuse_quantized(*arguments: Any) -> NoReturn:
    raise FormatError(
        "the file holds a quantized tensor, which rushlight does not support\nhint: save tensor.dequantize()"
    )


def layout(name: Any) -> Any:
    if name not in LAYOUTS:
        raise FormatError(f"the file holds the layout {name!r:.80}, which rushlight does not support")
    return LAYOUTS[name]


def device(*arguments: Any) -> Any:
    if not arguments or len(arguments) > 2 or type(arguments[0]) is not str:
        raise FormatError("a device must be built from its name and, optionally, its index")
    return core.device(*arguments)


def size(values: Any = ()) -> Any:
    if not isinstance(values, (tuple, list)) or not all(type(v) is int for v in values):
        raise FormatError("a torch.Size must be built from a tuple or list of ints")
    return core.Size(values)


def set_attributes(value: Any, state: Any) -> None:
    """Set the attributes of `value` that the dict `state` lists, which must not be class attributes."""
    if not isinstance(state, dict):
        raise FormatError(
            f"the state of a {type(value).__name__} must be a dictionary, got {type(state).__name__}"
        )
    for name in state:
        if type(name) is not str or name.startswith("__") or hasattr(type(value), name):
            raise FormatError(
                f"the state of a {type(value).__name__} sets {name!r:.80}, which is not a name of an instance attribute"
            )
    vars(value).update(state)


def packed_sequence(*arguments: Any) -> Any:
    from ..utils.rnn import PackedSequence

    kinds = (Tensor, type(None))
    if not 1 <= len(arguments) <= 4 or not all(isinstance(value, kinds) for value in arguments):
        raise FormatError("a PackedSequence must be built from one to four tensors")
    return PackedSequence(*arguments)


def uninitialized(kind: Any) -> Callable[..., Any]:
    def build(requires_grad: Any = False, where: Any = None, dtype: Any = None, *rest: Any) -> Any:
        return kind(bool(requires_grad), where, dtype)

    return build


# Functions that return tensors, which `rebuild_typed` may call.
_TENSORS = (
    rebuild_tensor,
    rebuild_tensor_v2,
    rebuild_tensor_v3,
    rebuild_parameter,
    rebuild_meta,
    rebuild_sparse,
)

# Builders that may copy tensors. They charge the memory of the copies themselves.
OF_BUDGET = (rebuild_tensor_v2, rebuild_tensor_v3, rebuild_typed)
