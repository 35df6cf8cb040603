"""Parameters and buffers: tensors that a module registers when they are assigned to its attributes."""

from __future__ import annotations

from copy import deepcopy

import rushlight_core as core
from rushlight_core import Tensor

from ._typing import Any, ClassVar, NoReturn

TYPE_CHECKING = False

# Results of operators on parameters are plain tensors.
_plain_results = getattr(getattr(core, "_C", None), "_disabled_torch_function_impl", None)


class Parameter(Tensor):
    """A tensor that is part of a module's trainable state.

    A parameter that is assigned to an attribute of a :class:`Module` becomes part of `parameters()` and of `state_dict()`.

    Args:
        data: the values, which are shared, not copied. Default: an empty tensor.
        requires_grad: whether to compute gradients. Only floating-point and complex parameters can require
            gradients.

    Raises:
        TypeError: `data` is not a tensor.

    Shape:
        - `data`: (*), any shape.

    Example:
        >>> weight = nn.Parameter(torch.zeros(2))
        >>> weight
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
        >>> layer = nn.Module()
        >>> layer.weight = weight
        >>> list(layer.parameters())[0] is weight
        True
    """

    if _plain_results is not None:
        __torch_function__ = _plain_results

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = core.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"{cls.__name__}(data): got {type(data).__name__}, needs a tensor\n"
                "hint: make one with tensor(...) first"
            )
        return Tensor._make_subclass(cls, data, requires_grad)

    def __repr__(self) -> str:
        return f"{type(self).__name__} containing:\n{self.detach().requires_grad_(self.requires_grad)!r}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        copy = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        if self.__dict__:
            copy.__dict__.update(deepcopy(self.__dict__, memo))
        return copy

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.detach(), self.requires_grad, dict(self.__dict__) or None)


def _rebuild(cls: type, data: Tensor, requires_grad: bool, attributes: dict[str, Any] | None) -> Any:
    tensor = cls(data, requires_grad=requires_grad)
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


class Buffer(Tensor):
    """A tensor that is part of a module's state but is not trained, such as a running mean.

    Args:
        data: the values, which are shared, not copied. Default: an empty tensor.
        persistent: whether the module's `state_dict` includes the buffer.

    Shape:
        - `data`: (*), any shape.

    Raises:
        TypeError: `data` is not a tensor.

    Example:
        >>> layer = nn.Module()
        >>> layer.mean = nn.Buffer(torch.zeros(2))
        >>> list(layer.state_dict()), list(layer.parameters())
        (['mean'], [])
    """

    persistent: bool

    if _plain_results is not None:
        __torch_function__ = _plain_results

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = core.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"{cls.__name__}(data): got {type(data).__name__}, needs a tensor")
        buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        if id(self) in memo:
            return memo[id(self)]
        copy = memo[id(self)] = type(self)(self.detach().clone(), persistent=self.persistent)
        copy.requires_grad_(self.requires_grad)
        return copy

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild_buffer, (type(self), self.detach(), self.persistent, self.requires_grad)


def _rebuild_buffer(cls: type, data: Tensor, persistent: bool, requires_grad: bool) -> Any:
    return cls(data, persistent=persistent).requires_grad_(requires_grad)


# --- parameters and buffers without a shape ---

# Operations that are allowed before the shape is known: moving, converting, and reading properties that do not depend
# on the shape. Other operations raise an error, because they would compute with an empty tensor.
_CONVERSIONS = frozenset(
    ("to", "cpu", "cuda", "half", "float", "double", "bfloat16", "char", "short", "int", "long", "empty_like")
)
_QUESTIONS = frozenset(
    (
        "is_floating_point",
        "is_complex",
        "is_signed",
        "is_inference",
        "get_device",
        "element_size",
        "requires_grad_",
    )
)
_PROPERTIES_OF_VALUES = frozenset(("T", "mT", "H", "mH", "real", "imag", "nbytes"))


def _name_of(func: Any) -> str:
    """Return the name of a function or method, or of the property that `func` gets or sets."""
    owner = getattr(func, "__self__", None)
    return (
        owner.__name__ if _is_property(func) and owner is not None else getattr(func, "__name__", str(func))
    )


def _is_property(func: Any) -> bool:
    return type(func).__name__ == "method-wrapper"


class UninitializedTensorMixin:
    """The base class of parameters and buffers whose shape a lazy layer determines later."""

    cls_to_become: ClassVar[type]

    if TYPE_CHECKING:
        data: Tensor
        requires_grad: bool

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Allocate the tensor with the given shape, in place. The tensor then becomes an ordinary parameter or buffer.

        `shape` is an int or a sequence of ints. The values are uninitialised. By default, device and dtype do not change.
        """
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        with core.no_grad():
            self.data = core.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    def _refuse(self, what: str, error: type[Exception] = ValueError) -> NoReturn:
        raise error(
            f"{what}: {type(self).__name__} has no shape and no values yet\n"
            "hint: call the model once with a typical batch, which determines the sizes of its lazy layers"
        )

    @property
    def shape(self) -> Any:
        self._refuse("shape", RuntimeError)

    @property
    def ndim(self) -> Any:
        self._refuse("ndim")

    def numel(self) -> Any:
        self._refuse("numel()")

    nelement = numel

    def dim(self) -> Any:
        self._refuse("dim()")

    def share_memory_(self) -> Any:
        self._refuse("share_memory_()", RuntimeError)

    def __len__(self) -> int:
        self._refuse("len()")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = _name_of(func)
        allowed = (
            name not in _PROPERTIES_OF_VALUES if _is_property(func) else name in _CONVERSIONS | _QUESTIONS
        )
        if not allowed:
            raise ValueError(
                f"{name}(): got {cls.__name__}, which has no shape and no values yet\n"
                "hint: call the model once with a typical batch, which determines the sizes of its lazy layers"
            )
        from rushlight_core.overrides import DisableTorchFunctionSubclass

        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def is_lazy(param: Any) -> bool:
    """Return whether `param` is a parameter or buffer whose shape is not known yet.

    Example:
        >>> is_lazy(nn.LazyLinear(3).weight), is_lazy(nn.Linear(2, 3).weight)
        (True, False)
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet, used by lazy layers.

    The parameter can be passed to an optimizer, moved to another device, and converted to another dtype.
    Other uses raise an error until `materialize` sets the shape. The object then becomes an ordinary
    parameter.

    Args:
        requires_grad: whether the tensor requires gradients.
        device: the device on which the tensor will be allocated.
        dtype: the dtype of the tensor when it is allocated.

    Raises:
        ValueError: the parameter is used before it has a shape. (Reading `shape` raises RuntimeError.)

    Example:
        >>> weight = nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> type(weight).__name__, weight.shape
        ('Parameter', torch.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        return Tensor._make_subclass(cls, core.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, self.device, self.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet; see :class:`UninitializedParameter`.

    Args:
        requires_grad: whether the tensor requires gradients. Buffers rarely need gradients.
        device: the device on which the tensor will be allocated.
        dtype: the dtype of the tensor when it is allocated.
        persistent: whether the module's `state_dict` includes the buffer.

    Example:
        >>> mean = nn.UninitializedBuffer()
        >>> mean.materialize((3,))
        >>> type(mean).__name__, mean.shape
        ('Buffer', torch.Size([3]))
    """

    cls_to_become = Buffer

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        data = core.empty(0, device=device, dtype=dtype)
        buffer = Tensor._make_subclass(cls, data, requires_grad)
        buffer.persistent = persistent
        return buffer

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # A module replaces a buffer by the result of a conversion, so the result must be lazy, too.
        result = super().__torch_function__(func, types, args, kwargs)
        if _is_property(func) or not isinstance(result, Tensor) or result is args[0]:
            return result
        made = Tensor._make_subclass(cls, result, result.requires_grad)
        made.persistent = args[0].persistent
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype, self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, self.device, self.dtype, self.persistent)


# --- arguments for creating parameters ---


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return the entries of `kwargs` that functions such as `empty` accept. Layers use them to create their tensors.

    The accepted arguments are `device`, `dtype` and `memory_format`, which may also be given in a dictionary
    `factory_kwargs`.

    Args:
        kwargs: keyword arguments.

    Raises:
        TypeError: there are other arguments, or an argument is given twice.

    Example:
        >>> nn.factory_kwargs({"factory_kwargs": {"dtype": torch.float64}, "device": "cpu"})
        {'dtype': torch.float64, 'device': 'cpu'}
    """
    own = {name: value for name, value in (kwargs or {}).items() if name != "factory_kwargs"}
    given = (kwargs or {}).get("factory_kwargs", {})
    for name in (*own, *given):
        if name not in ("device", "dtype", "memory_format"):
            raise TypeError(
                f"factory_kwargs(kwargs): got {name!r}, needs 'device', 'dtype' or 'memory_format'"
            )
        if name in own and name in given:
            raise TypeError(f"factory_kwargs(kwargs): {name!r} is given twice")
    return {**given, **own}


def zero_gradient(parameter: Tensor) -> None:
    """Detach the gradient of a parameter from its graph, and fill the gradient with zeros in place."""
    grad = parameter.grad
    if grad is None:
        return
    if grad.grad_fn is None:
        grad.requires_grad_(False)
    else:
        grad.detach_()
    grad.zero_()


__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]
