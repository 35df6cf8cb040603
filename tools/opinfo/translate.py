"""Translate the contents of PyTorch's operator database to our library: functions, tensors, dtypes."""

from __future__ import annotations

import dataclasses
import dis
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

# Modules in which a function of PyTorch is searched. The first module that has it determines its name.
NAMESPACES = ("", "nn.functional", "linalg", "special", "fft", "signal.windows", "masked", "sparse", "Tensor")


DIMENSIONS = 64  # the largest number of dimensions of our tensors

# Functions of PyTorch's tests that prepare PyTorch, and that are not needed for rushlight.
STAND_INS: dict[str, Callable[..., Any]] = {
    "wrapper_set_seed": lambda function, *args, **kwargs: function(*args, **kwargs),
}


class AbsentError(LookupError):
    """Raised for a name that our library does not have."""


class UnsupportedError(TypeError):
    """Raised for an argument that is out of scope: a layout, device or dtype that our library lacks."""


def attribute(root: Any, path: str) -> Any:
    """Return the object at a dotted path, such as `attribute(torch, "nn.functional.pad")`; an empty path is the root itself.

    Raises:
        AttributeError: there is none.
    """
    return functools.reduce(getattr, path.split(".") if path else [], root)


def name_of(thing: Any) -> str:
    return str(thing).rsplit(".", 1)[-1]


class Recipe:
    """A tensor of PyTorch as data, from which both libraries create equal tensors with the same strides."""

    def __init__(self, tensor: Any) -> None:
        self.shape, self.stride = tuple(tensor.shape), tuple(tensor.stride())
        self.dtype, self.requires_grad = tensor.dtype, tensor.requires_grad
        extent = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        source = tensor.detach().resolve_conj().resolve_neg()
        if tuple(source.stride()) != self.stride:  # resolving the conjugation made a copy
            self.stride = tuple(source.stride())
        self.memory = source.as_strided((extent if tensor.numel() else 0,), (1,)).clone()

    def theirs(self, widen: dict[Any, Any] | None = None) -> Any:
        memory = self.memory.to((widen or {}).get(self.dtype, self.dtype), copy=True)
        made = memory.as_strided(self.shape, self.stride)
        return made.requires_grad_() if self.requires_grad else made

    def ours(self, theirs: Any, ours: Any) -> Any:
        if len(self.shape) > DIMENSIONS:
            raise UnsupportedError(f"{len(self.shape)} dimensions")
        memory = self.memory
        if name_of(self.dtype) == "bfloat16":  # NumPy does not have this dtype
            made = ours.from_numpy(memory.view(theirs.int16).numpy().copy()).view(ours.bfloat16)
        else:
            made = ours.from_numpy(memory.numpy().copy())
        made = made.as_strided(self.shape, self.stride)
        return made.requires_grad_() if self.requires_grad else made


class Translator:
    """Translator between PyTorch (`theirs`) and our library."""

    def __init__(self, theirs: Any, ours: Any, inner: str = "torch.testing") -> None:
        self.theirs, self.ours = theirs, ours
        self.inner = inner  # functions of these modules are created again for rushlight
        self._made: dict[int, tuple[Any, Callable[..., Any]]] = {}

    # --- functions ---

    @functools.cached_property
    def _paths(self) -> dict[int, str]:
        paths: dict[int, str] = {}
        for namespace in reversed(NAMESPACES):
            holder = attribute(self.theirs, namespace)
            for name in dir(holder):
                if callable(found := getattr(holder, name, None)):
                    paths[id(found)] = f"{namespace}.{name}".lstrip(".")
        return paths

    def function(self, entry: Any) -> Callable[..., Any]:
        """Return our function for an entry of the operator database.

        Raises:
            AbsentError: there is none.
        """
        theirs = entry.op
        try:
            if attribute(self.theirs, entry.name) is theirs:
                return attribute(self.ours, entry.name)
        except AttributeError:
            if hasattr(self.theirs, entry.name.partition(".")[0]):
                raise AbsentError(entry.name) from None
        return self.callable(theirs)

    def callable(self, theirs: Any) -> Callable[..., Any]:
        """Return our function for a function of PyTorch, or a function of PyTorch's tests that calls our library."""
        path = self._paths.get(id(theirs))
        if path is not None:
            try:
                return attribute(self.ours, path)
            except AttributeError:
                raise AbsentError(path) from None
        if isinstance(theirs, types.FunctionType) and theirs.__module__.startswith(self.inner):
            return self._rebound(theirs)
        if isinstance(theirs, functools.partial):
            return functools.partial(
                self.callable(theirs.func), *self.value(theirs.args), **self.value(theirs.keywords)
            )
        raise AbsentError(getattr(theirs, "__qualname__", None) or str(theirs))

    def _rebound(self, function: types.FunctionType) -> Callable[..., Any]:
        if function.__name__ in STAND_INS:
            return STAND_INS[function.__name__]
        known = self._made.get(id(function))
        if known:
            return known[1]
        scope = {name: self.value(function.__globals__[name]) for name in _globals(function)}
        scope["__builtins__"] = function.__globals__["__builtins__"]
        cells = tuple(types.CellType(self.value(c.cell_contents)) for c in function.__closure__ or ())
        made = types.FunctionType(
            function.__code__, scope, function.__name__, self.value(function.__defaults__), cells
        )
        made.__kwdefaults__ = self.value(function.__kwdefaults__)
        self._made[id(function)] = function, made
        return made

    # --- values ---

    def value(self, value: Any) -> Any:
        """Return our counterpart of a value. Values that are not part of PyTorch are returned unchanged.

        Raises:
            UnsupportedError: the value is a tensor, dtype or device that we do not have.
            AbsentError: the value is a function or module that we do not have.
        """
        theirs = self.theirs
        if isinstance(value, Recipe):
            return value.ours(theirs, self.ours)
        if isinstance(value, theirs.Tensor):
            return recipe(value).ours(theirs, self.ours)
        if isinstance(value, theirs.Size):
            return self.ours.Size(value)
        if isinstance(value, (theirs.dtype, theirs.layout, theirs.memory_format)):
            found = getattr(self.ours, name_of(value), None)
            if found is None:
                raise UnsupportedError(str(value))
            return found
        if isinstance(value, theirs.device):
            return self.ours.device(str(value))
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, type):
            own = value.__module__.partition(".")[0] == theirs.__name__ and not value.__module__.startswith(
                self.inner
            )
            return getattr(self.ours, value.__name__, value) if own else value
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, functools.partial)):
            foreign = not (getattr(value, "__module__", None) or "").startswith(theirs.__name__)
            return value if foreign and id(value) not in self._paths else self.callable(value)
        home = type(value).__module__
        own = home.startswith(theirs.__name__) and not home.startswith(self.inner)
        if own and dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [f.name for f in dataclasses.fields(value) if f.init]
            return self._class(type(value))(**{name: self.value(getattr(value, name)) for name in fields})
        if isinstance(value, theirs.nn.Module):
            kind = self._class(type(value))
            known = set(inspect.signature(kind).parameters) & set(value.__constants__)
            return kind(**{name: self.value(getattr(value, name)) for name in known})
        return rebuilt(value, self.value)

    def _class(self, kind: type) -> type:
        """Return our class of the same name, in nn or nn.functional."""
        for namespace in (self.ours.nn, self.ours.nn.functional):
            if isinstance(found := getattr(namespace, kind.__name__, None), type):
                return found
        raise AbsentError(kind.__qualname__)

    def _module(self, module: types.ModuleType) -> Any:
        root, _, path = module.__name__.partition(".")
        if root != self.theirs.__name__ or module.__name__.startswith(self.inner):
            return module
        try:
            return attribute(self.ours, path)
        except AttributeError:
            raise AbsentError(module.__name__) from None


def recipe(tensor: Any) -> Recipe:
    """Return the recipe of a tensor.

    Raises:
        UnsupportedError: the tensor is not dense, not on the CPU, or of a dtype that we lack.
    """
    dense = name_of(tensor.layout) == "strided" and tensor.device.type == "cpu" and not tensor.is_quantized
    if not dense or name_of(tensor.dtype).startswith(("float8", "float4", "complex32", "q", "bits")):
        raise UnsupportedError(f"{name_of(tensor.layout)} {name_of(tensor.dtype)} on {tensor.device.type}")
    return Recipe(tensor)


def rebuilt(value: Any, part: Callable[[Any], Any]) -> Any:
    """Return a list, tuple, named tuple, dict or slice with `part` applied to each element; other values unchanged."""
    if isinstance(value, tuple):
        made = [part(v) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, list):
        return [part(v) for v in value]
    if isinstance(value, dict):
        return {k: part(v) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(part(value.start), part(value.stop), part(value.step))
    return value


def _globals(function: types.FunctionType) -> set[str]:
    """Return the global names that a function reads, except names of builtins."""
    read = {
        instruction.argval
        for code in _codes(function.__code__)
        for instruction in dis.get_instructions(code)
        if instruction.opname == "LOAD_GLOBAL"
    }
    return read & set(function.__globals__)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object, and the code objects of the functions that it creates."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
