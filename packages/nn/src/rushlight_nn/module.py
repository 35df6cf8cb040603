"""Module, the base class of layers and models."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import rushlight_core as core
from rushlight_core import Tensor

from ._notes import add_path
from ._typing import Any, ClassVar, Self
from .conversion import get_overwrite_module_params_on_conversion, get_swap_module_params_on_conversion
from .hooks import (
    Hooks,
    _global_buffer_registration_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    passed_through,
)
from .parameter import Buffer, Parameter, is_lazy, zero_gradient
from .registry import TABLES, Registry, install
from .state import State
from .traversal import Traversal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ParamSpec, Protocol, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R", covariant=True)

    class _HasForward(Protocol[P, R]):
        def forward(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


_NOT_YET: Any = MappingProxyType({})
_NOTHING: Any = object()


_SPECIAL = frozenset((*TABLES, "__class__"))


class _GetattrFromTables:
    """A base class whose `__getattr__` looks names up in the tables of parameters, buffers and children.

    This class is added as the last base of module classes that define `__getattr__`, `__setattr__` or `__delattr__`, or
    whose methods call `__getattr__`. Module itself must not define `__getattr__`; see Note [Attributes of a module].
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__:  # this method was called directly, not after a failed lookup
            return self.__dict__[name]
        for table in TABLES:
            entries = self.__dict__.get(table)
            if isinstance(entries, dict) and name in entries:
                return entries[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


class Module(Traversal, Hooks, State):
    """The base class of layers and models.

    A subclass calls `super().__init__()`, assigns parameters and other modules to attributes, and defines `forward`.
    Calling the module calls `forward` and the registered hooks.

    An exception that is raised in `forward` gets a note with the path of the module that raised it.

    Raises:
        NotImplementedError: the subclass does not define `forward` (raised when the module is called).
        AttributeError: a parameter or module is assigned before `super().__init__()` was called.

    Example:
        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = nn.Linear(4, 16)
        ...         self.output = nn.Linear(16, 2)
        ...
        ...     def forward(self, x):
        ...         return self.output(self.hidden(x).relu())
        >>> net = Net()
        >>> net(torch.randn(3, 4)).shape
        torch.Size([3, 2])
        >>> sum(p.numel() for p in net.parameters())
        114
    """

    training: bool = True
    # Whether parameters, buffers and children are attributes of the instance as well.
    _mirrored: ClassVar[bool] = True
    # These tables are read-only until __init__ has run; see Note [Attributes of a module].
    _parameters: dict[str, Parameter | None] = _NOT_YET
    _buffers: dict[str, Tensor | None] = _NOT_YET
    _modules: dict[str, Any] = _NOT_YET
    _non_persistent_buffers_set: set[str]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self) -> None:
        set_attribute = object.__setattr__
        set_attribute(self, "training", True)
        mirrored = self._mirrors()
        set_attribute(self, "_parameters", Registry(self) if mirrored else {})
        set_attribute(self, "_buffers", Registry(self) if mirrored else {})
        set_attribute(self, "_modules", Registry(self) if mirrored else {})
        set_attribute(self, "_non_persistent_buffers_set", set())

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        codes = (getattr(member, "__code__", None) for member in cls.__dict__.values())
        cls._mirrors(calls_getattr=any("__getattr__" in getattr(code, "co_names", ()) for code in codes))

    @classmethod
    def _mirrors(cls, calls_getattr: bool = False) -> bool:
        """Update `_mirrored` and the base classes of this class, and return `_mirrored`.

        `_mirrored` states whether entries of the tables are also attributes of the instance. Every call checks the class
        again, because a program may assign the class's `__getattr__`, `__setattr__` or `__delattr__` at any time.
        """
        found = getattr(cls, "__getattr__", None)
        if cls._mirrored and (
            cls.__setattr__ is not Module.__setattr__
            or cls.__delattr__ is not Module.__delattr__
            or (found is not None and found is not _GetattrFromTables.__getattr__)
        ):
            cls._mirrored = False
        if (calls_getattr or not cls._mirrored) and not issubclass(cls, _GetattrFromTables):
            type.__setattr__(cls, "__bases__", (*cls.__bases__, _GetattrFromTables))
        return cls._mirrored

    if TYPE_CHECKING:
        # To a type checker, a call has the arguments and the result of `forward`, so `model(x)` is a Tensor.
        def __call__(self: _HasForward[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    else:

        def __call__(self, first: Any = _NOTHING, /, *args: Any, **kwargs: Any) -> Any:
            # Most calls have one positional argument. Passing it directly instead of in a tuple saves a third of the
            # time.
            try:
                if self._hooked or args or kwargs or first is _NOTHING:
                    everything = args if first is _NOTHING else (first, *args)
                    if self._hooked:
                        return self._call_with_hooks(everything, kwargs)
                    return self.forward(*everything, **kwargs)
                return self.forward(first)
            except Exception as error:
                add_path(self, error)
                raise

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output of the module. A subclass must define this method if its instances are called."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    # Attributes ---------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._make_room(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._make_room(name, "_modules")
            if _global_module_registration_hooks:
                value = passed_through(_global_module_registration_hooks, self, name, value)
            self._modules[name] = value
        elif name in self._parameters:
            self._accept_only_none(name, value, "a Parameter")
            self._parameters[name] = None
        elif name in self._modules:
            self._accept_only_none(name, value, "a Module")
            self._modules[name] = None
        elif isinstance(value, Buffer):
            self._make_room(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in self._buffers:
            if not isinstance(value, Tensor):
                self._accept_only_none(name, value, "a tensor")
            if _global_buffer_registration_hooks:
                value = passed_through(_global_buffer_registration_hooks, self, name, value)
            self._buffers[name] = value
        elif name in _SPECIAL:
            if name == "__class__":
                self._set_class(value)
            else:
                install(self, name, value)
        else:
            object.__setattr__(self, name, value)

    def _accept_only_none(self, name: str, value: Any, needed: str) -> None:
        if value is not None:
            raise TypeError(
                f"{type(self).__name__}.{name}: got {type(value).__name__}, needs {needed} or None\n"
                f"hint: `del module.{name}` first to use the name for something else"
            )

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def _set_class(self, cls: Any) -> None:
        """Set `__class__`. If the new class has another `_mirrored`, add or remove the tables' attributes."""
        mirrored = self._mirrored
        object.__setattr__(self, "__class__", cls)
        if self._mirrors() != mirrored and "_parameters" in self.__dict__:
            for name in TABLES:
                install(self, name, dict(getattr(self, name)))

    def _check_tables(self) -> None:
        """Make sure that this module has tables and does not share them with another module."""
        table = self._parameters
        if (
            table.belongs_to(self)
            if type(table) is Registry
            else not self._mirrored and table is not _NOT_YET
        ):
            return
        if table is _NOT_YET:
            raise AttributeError(
                f"{type(self).__name__}: a parameter, buffer or module was assigned before "
                "Module.__init__() ran\n"
                "hint: call super().__init__() first"
            )
        # The attributes were copied from another instance without the methods of Module, for example by a user's
        # __setstate__.
        for name in TABLES:
            install(self, name, dict(getattr(self, name)))

    def _make_room(self, name: str, kind: str) -> None:
        """Remove other attributes called `name`, so that the table `kind` (such as "_parameters") can store a value."""
        self._check_tables()
        if self._mirrored and (name in getattr(self, kind) or not hasattr(self, name)):
            return
        for table in TABLES:
            if table != kind:
                getattr(self, table).pop(name, None)
        self._non_persistent_buffers_set.discard(name)
        self.__dict__.pop(name, None)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._mirrors()
        for name in TABLES:
            install(self, name, dict(state.get(name, {})))

    def __dir__(self) -> list[str]:
        # Leave out names such as "0" of the entries of a Sequential, which are not valid attribute names in Python.
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[0].isdigit())

    # Registration -------------------------------------------------------------------------------------------

    def _check_name(self, kind: str, name: str, table: str) -> None:
        self._check_tables()
        if not isinstance(name, str):
            raise TypeError(f"register_{kind}(name): got {type(name).__name__}, needs a str")
        if "." in name or not name:
            raise KeyError(
                f"register_{kind}(name): {name!r} is not valid: the name must not be empty or contain a dot"
            )
        if name not in getattr(self, table) and hasattr(self, name):
            raise KeyError(f"register_{kind}(name): {type(self).__name__} already has an attribute {name!r}")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under `name`. If `param` is None, the name is reserved for an optional parameter.

        Raises:
            KeyError: the name is empty, contains a dot, or is the name of another attribute.
            TypeError: `param` is not a Parameter.
            ValueError: `param` is not a leaf: it was computed from other tensors.
        """
        self._check_name("parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"register_parameter({name!r}): got {type(param).__name__}, needs a Parameter or None"
                )
            if not param.is_leaf:
                raise ValueError(
                    f"register_parameter({name!r}): the tensor was computed from other tensors, needs a leaf\n"
                    "hint: compute the tensor in forward from parameters"
                )
            if _global_parameter_registration_hooks:
                param = passed_through(_global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: a tensor called `name` that is part of the module's state but is not trained.

        Args:
            name: the attribute's name.
            tensor: the values, or None to reserve the name.
            persistent: whether `state_dict` includes the buffer.
        """
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer({name!r}): got {type(tensor).__name__}, needs a tensor or None")
        if _global_buffer_registration_hooks:
            tensor = passed_through(_global_buffer_registration_hooks, self, name, tensor)
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add `module` as a child under `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"add_module({name!r}): got {type(module).__name__}, needs a Module or None")
        self._check_name("module", name, "_modules")
        if _global_module_registration_hooks:
            module = passed_through(_global_module_registration_hooks, self, name, module)
        self._modules[name] = module

    register_module = add_module

    # Moving and converting ----------------------------------------------------------------------------------

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Call `fn` with each parameter, gradient and buffer, and store the result in its place.

        The result for a parameter becomes the `data` of the same Parameter object. If
        `conversion.set_overwrite_module_params_on_conversion` is on, it becomes a new Parameter object.
        """
        if recurse:
            for child in self.children():
                child._apply(fn)
        self._check_tables()
        overwrite = get_overwrite_module_params_on_conversion() and not get_swap_module_params_on_conversion()
        for name, parameter in list(self._parameters.items()):
            if parameter is None:
                continue
            with core.no_grad():
                new, grad = fn(parameter), parameter.grad
                new_grad = None if grad is None else fn(grad)
            if overwrite and not is_lazy(parameter):
                replacement = Parameter(new.detach(), parameter.requires_grad)
                replacement.grad = new_grad
                self._parameters[name] = replacement
                continue
            if new is not parameter:
                if new_grad is not grad:
                    parameter.grad = None  # its dtype or device would not match the new data
                parameter.data = new
            if grad is not None and new_grad is not None and new_grad is not grad:
                parameter.grad = new_grad.requires_grad_(grad.requires_grad)
        for name, buffer in list(self._buffers.items()):
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and convert parameters and buffers in place.

        The forms are `to(device)`, `to(dtype)`, `to(device, dtype)` and `to(tensor)`, each with the options
        `non_blocking` and `memory_format`. A dtype applies to floating-point and complex tensors only.

        Raises:
            TypeError: the dtype is neither floating-point nor complex.
            NotImplementedError: a tensor is on `meta` and has no values to move to another device.
        """
        device, dtype, options = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"to(dtype): got {dtype}, needs a floating-point or complex dtype, since parameters have gradients"
            )
        memory_format = options.pop("memory_format", None)

        def convert(tensor: Tensor) -> Tensor:
            if (
                tensor.is_meta
                and not is_lazy(tensor)
                and device is not None
                and core.device(device).type != "meta"
            ):
                raise NotImplementedError(
                    "Module.to(device): Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() "
                    "instead of torch.nn.Module.to() when moving module from meta to a different device."
                )
            target = dtype if tensor.dtype.is_floating_point or tensor.dtype.is_complex else None
            if memory_format is not None and not is_lazy(tensor) and tensor.dim() in (4, 5):
                return tensor.to(device, target or tensor.dtype, memory_format=memory_format, **options)
            return tensor.to(device or tensor.device, target or tensor.dtype, **options)

        return self._apply(convert)

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to the GPU `device`, or to the current GPU if `device` is None."""
        if device is None:
            return self.to("cuda")
        return self.to(f"cuda:{device}" if isinstance(device, int) else device)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move parameters and buffers to `device` without copying their values, for example from `meta`.

        The values are uninitialised afterwards.
        """
        return self._apply(lambda tensor: core.empty_like(tensor, device=device), recurse)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, including those with an integer dtype, to the dtype `dst_type`."""
        return self._apply(lambda tensor: tensor.to(dst_type))

    def _to_floating(self, dtype: Any) -> Self:
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.dtype.is_floating_point else tensor)

    def float(self) -> Self:
        """Convert floating-point parameters and buffers to float32."""
        return self._to_floating(core.float32)

    def double(self) -> Self:
        """Convert floating-point parameters and buffers to float64."""
        return self._to_floating(core.float64)

    def half(self) -> Self:
        """Convert floating-point parameters and buffers to float16."""
        return self._to_floating(core.float16)

    def bfloat16(self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._to_floating(core.bfloat16)

    def share_memory(self) -> Self:
        """Move parameters and buffers to shared memory."""
        return self._apply(lambda tensor: tensor.share_memory_())

    # Modes and gradients ------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every descendant, children before parents, and then on this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Leave the module unchanged. The first call warns that there is no compiler; see `rushlight.compile`."""
        core.compile(self, *args, **kwargs)

    def train(self, mode: bool = True) -> Self:
        """Set training mode (`mode` true) or evaluation mode on the module and its descendants."""
        if not isinstance(mode, bool):
            raise ValueError(f"train(mode): got {type(mode).__name__}, needs a bool")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: dropout returns its input, and batch norm uses its running statistics."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None or, if `set_to_none` is false, to zero."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            else:
                zero_gradient(parameter)

    # Text ---------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text that `repr` shows for the module itself, without children. Subclasses may override this method."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        if not self._modules and len(lines) < 2:
            return f"{self._get_name()}({extra})"
        lines += [f"({name}): {child!r}" for name, child in self._modules.items()]
        body = "\n".join(lines).replace("\n", "\n  ")
        return f"{self._get_name()}(\n  {body}\n)"


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Return the device, the dtype and the options that the arguments of `to` specify."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    other = kwargs.pop("tensor", None)
    options: dict[str, Any] = {
        name: kwargs.pop(name) for name in ("non_blocking", "memory_format") if name in kwargs
    }
    if kwargs:
        raise TypeError(f"to(): unexpected keyword argument {next(iter(kwargs))!r}")
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    if other is not None:
        device, dtype = other.device, other.dtype
    if rest and (
        rest[0] is None or (isinstance(rest[0], (str, int, core.device)) and not isinstance(rest[0], bool))
    ):
        device = rest.pop(0)
    if rest and (rest[0] is None or core._C._dtype_of(rest[0]) is not None):
        dtype = core._C._dtype_of(rest.pop(0))
    if rest and isinstance(rest[0], bool):
        options["non_blocking"] = rest.pop(0)
    if rest:
        raise TypeError(
            f"to(): got {type(rest[0]).__name__} ({rest[0]!r}), needs a device, a dtype or a tensor"
        )
    if isinstance(device, int):
        device = f"cuda:{device}"
    return (None if device is None else core.device(device)), dtype, options
