"""Parametrizations, which compute tensors of a module from other tensors: `rushlight.nn.utils.parametrize`.

Note [Classes of parametrized modules]
A parametrized tensor is a property, and properties belong to classes. A module with a parametrization therefore gets a class
that is derived from its original class. Every change creates a new class, and classes are never modified. Therefore modules
that share a class, such as copies, do not affect each other. Copies and pickles contain the original class and the names of
the parametrized tensors instead of the derived class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ..layers.container import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

# The number of open `cached()` blocks, and a dictionary from (id of the module, name of the tensor) to computed tensors.
# The module is stored with the value, so that no other object gets its id.
_caching = 0
_cache: dict[tuple[int, str], tuple[Module, Any]] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Return a context manager in which every parametrized tensor is computed only once.

    This saves time if a model reads the same tensor repeatedly, for example the weight of a recurrent cell. Parameters must
    not be changed in this context.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> with nn.utils.parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The sequence of parametrizations that computes a tensor from `original`.

    Each module is called with the result of the previous module. If the first module is called with several
    tensors, these tensors are named `original0`, `original1` and so on.

    Args:
        modules: the modules to call, in this order.
        original: the tensor before it is parametrized. The `right_inverse` methods of the modules, where defined, are
            applied to `original` in reverse order.
        unsafe: whether to skip the checks that the shape and the dtype remain the same.

    Raises:
        ValueError: the shape or dtype changes.

    Shape:
        - `original`: (*), any shape.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> steps = layer.parametrizations.weight
        >>> len(steps), torch.equal(steps(), layer.weight)
        (1, True)
    """

    original: Any

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList(modules): got no modules, needs at least one")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with core.no_grad():
            start: Any = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        start = module.right_inverse(start)
        if not isinstance(start, (Tensor, Sequence)):
            raise ValueError(
                f"parametrization: right_inverse of {type(modules[0]).__name__} returned {type(start).__name__}, "
                "needs a tensor or a sequence of tensors"
            )
        self.is_tensor: bool = isinstance(start, Tensor)
        self.ntensors: int = 1 if isinstance(start, Tensor) else len(start)
        if isinstance(start, Tensor):
            if start.dtype != dtype:
                raise ValueError(
                    f"parametrization: right_inverse of {type(modules[0]).__name__} must return dtype {dtype}, "
                    f"got {start.dtype}"
                )
            if start is not original:
                _replace(original, start)  # keep the object, to which an optimizer may refer
            _register(self, "original", original)
        else:
            for i, part in enumerate(start):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"parametrization: right_inverse of {type(modules[0]).__name__} returned "
                        f"{type(part).__name__} as item {i}, needs a tensor"
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part.detach(), original.requires_grad)
                elif part.requires_grad != original.requires_grad:
                    part = part.detach().requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            result = self()
            if not isinstance(result, Tensor):
                raise ValueError(f"parametrization: forward returned {type(result).__name__}, needs a tensor")
            if result.dtype != dtype:
                raise ValueError(
                    f"parametrization: forward must return dtype {dtype}, got {result.dtype}\n"
                    "hint: pass unsafe=True to allow other dtypes"
                )
            if result.shape != shape:
                raise ValueError(
                    f"parametrization: forward must return shape {tuple(shape)}, got {tuple(result.shape)}\n"
                    "hint: pass unsafe=True to allow other shapes"
                )

    def _originals(self) -> list[Any]:
        return (
            [self.original]
            if self.is_tensor
            else [getattr(self, f"original{i}") for i in range(self.ntensors)]
        )

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors so that the parametrized tensor becomes `value`.

        An assignment to the parametrized tensor calls this method.

        Raises:
            RuntimeError: a parametrization has no `right_inverse`.
            ValueError: the tensors that `right_inverse` returned differ from the originals in number or dtype.
        """
        with core.no_grad():
            start: Any = value
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization: {type(module).__name__} does not define right_inverse, "
                        "so the tensor cannot be assigned"
                    )
                start = module.right_inverse(start)
            parts = [start] if self.is_tensor else start
            originals = self._originals()
            if not isinstance(parts, Sequence) or len(parts) != len(originals):
                raise ValueError(
                    f"parametrization: right_inverse returned {len(parts) if isinstance(parts, Sequence) else 1} "
                    f"tensors, needs {len(originals)}"
                )
            for i, (part, original) in enumerate(zip(parts, originals, strict=True)):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"parametrization: right_inverse returned {type(part).__name__} as item {i}, needs a tensor"
                    )
                if part.dtype != original.dtype:
                    raise ValueError(
                        f"parametrization: right_inverse returned {part.dtype} as item {i}, needs {original.dtype}"
                    )
            for part, original in zip(parts, originals, strict=True):
                _replace(original, part)

    def forward(self) -> Tensor:
        """Compute the parametrized tensor from the original tensors."""
        first, *others = self
        result = first(*self._originals())
        for module in others:
            result = module(result)
        return result


def _replace(tensor: Tensor, value: Tensor) -> None:
    """Give `tensor` new values in new memory, so that tensors of an earlier `state_dict` do not change."""
    tensor.data = value.detach().clone()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


# --- classes ---


class _Parametrized:
    """The base class of the classes of parametrized modules; see Note [Classes of parametrized modules]."""

    _unparametrized: type
    _parametrized: tuple[str, ...]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (self._unparametrized, self._parametrized), self.__dict__


def _rebuild(base: type, names: tuple[str, ...]) -> Any:
    kind = _class(base, names)
    return object.__new__(kind)


def _class(base: type, names: tuple[str, ...]) -> type:
    """Return a subclass of `base` in which the parametrized tensors `names` are properties.

    If `names` is empty, return `base` itself."""
    if not names:
        return base
    members: dict[str, Any] = {name: _property(name) for name in names}
    members.update(_unparametrized=base, _parametrized=names, __module__=base.__module__)
    make: Any = type(base)  # a user's class may have another metaclass than Module
    return make(f"Parametrized{base.__name__}", (_Parametrized, base), members)


def _property(name: str) -> property:
    def get(self: Any) -> Tensor:
        if not _caching:
            return self.parametrizations[name]()
        entry = _cache.get((id(self), name))
        if entry is None:
            entry = _cache[id(self), name] = (self, self.parametrizations[name]())
        return entry[1]

    def set(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set)


def type_before_parametrizations(module: Module) -> type:
    """Return the class of a module before parametrization, or the current class if nothing is parametrized.

    Args:
        module: the module.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> type(layer).__name__, nn.utils.parametrize.type_before_parametrizations(layer).__name__
        ('ParametrizedLinear', 'Linear')
    """
    return module._unparametrized if isinstance(module, _Parametrized) else type(module)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether any tensor of a module, or the tensor of a given name, is parametrized.

    Args:
        module: the module; its children are not checked.
        tensor_name: the name of a tensor; None checks for any tensor.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> nn.utils.parametrize.is_parametrized(layer), nn.utils.parametrize.is_parametrized(layer, "bias")
        (True, False)
    """
    if not isinstance(module, _Parametrized):
        return False
    return tensor_name is None or tensor_name in module._parametrized


# --- registering and removing ---


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Parametrize a tensor of a module: `module.tensor_name` becomes ``parametrization(original)``.

    The tensor is computed whenever it is read. The former parameter or buffer becomes
    `module.parametrizations.tensor_name.original`. Several parametrizations of one tensor are applied one
    after the other. If the parametrization has a method `right_inverse`, this method computes the initial
    `original`, and values can be assigned to the tensor. If `right_inverse` returns several tensors, all of
    them are passed to the parametrization.

    Args:
        module: the module, which is returned. The module's class is replaced by a derived class.
        tensor_name: the name of a parameter or buffer.
        parametrization: a module that computes the parametrized tensor from the original tensor.
        unsafe: whether to skip the checks that the shape and the dtype remain the same.

    Shape:
        - Tensor: (*), any shape. The parametrization must keep the shape unless `unsafe` is True.

    Raises:
        ValueError: the parameter or buffer does not exist, or the shape or dtype changes.

    Example:
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = nn.Linear(3, 3)
        >>> _ = nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> torch.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    target: Any = module
    if is_parametrized(module, tensor_name):
        steps = target.parametrizations[tensor_name]
        if not unsafe:
            _check_further(getattr(module, tensor_name), parametrization)
        steps.append(parametrization)
        steps.unsafe = steps.unsafe or unsafe
        return module
    original = module._parameters.get(tensor_name)
    if original is None:
        original = module._buffers.get(tensor_name)  # type: ignore[assignment]
    if original is None:
        raise ValueError(
            f"register_parametrization(tensor_name): {type(module).__name__} has no parameter or buffer "
            f"{tensor_name!r}"
        )
    # Create the list first: if this raises an error, the module is unchanged.
    steps = ParametrizationList([parametrization], original, unsafe)
    steps.train(module.training)
    delattr(module, tensor_name)
    if not isinstance(module, _Parametrized):
        target.parametrizations = ModuleDict()
    names = module._parametrized if isinstance(module, _Parametrized) else ()
    module.__class__ = _class(type_before_parametrizations(module), (*names, tensor_name))
    target.parametrizations[tensor_name] = steps
    return module


def _check_further(before: Tensor, parametrization: Any) -> None:
    """Raise ValueError if an additional parametrization changes the shape or the dtype."""
    name = type(parametrization).__name__

    def check(what: str, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(
                f"register_parametrization: {name}{what} returned {type(value).__name__}, needs a tensor"
            )
        if value.dtype != before.dtype or value.shape != before.shape:
            raise ValueError(
                f"register_parametrization: {name}{what} must return {before.dtype} of shape {tuple(before.shape)}, got "
                f"{value.dtype} of shape {tuple(value.shape)}\nhint: pass unsafe=True to allow it"
            )

    after = parametrization(before)
    check("", after)
    if hasattr(parametrization, "right_inverse"):
        with core.no_grad():
            try:
                start = parametrization.right_inverse(after)
            except NotImplementedError:
                return
        check(".right_inverse", start)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor an ordinary parameter or buffer again.

    Args:
        module: the module, which is returned. If no parametrization is left, the module's original class is restored.
        tensor_name: the name of the tensor.
        leave_parametrized: whether the tensor keeps its current value. If False, the tensor is set to
            `original`, which must be a single tensor.

    Raises:
        ValueError: the tensor is not parametrized, or `leave_parametrized` is False and there are several originals.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> nn.utils.parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=2, out_features=3, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"remove_parametrizations(tensor_name): {tensor_name!r} of {type(module).__name__} is not parametrized"
        )
    target: Any = module
    steps = target.parametrizations[tensor_name]
    if steps.is_tensor:
        tensor = steps.original
        if leave_parametrized:
            with core.no_grad():
                value = getattr(module, tensor_name)
            _replace(tensor, value)
    elif not leave_parametrized:
        raise ValueError(
            f"remove_parametrizations(leave_parametrized): {tensor_name!r} is computed from {steps.ntensors} tensors, "
            "so the parameter cannot be restored\nhint: pass leave_parametrized=True"
        )
    else:
        with core.no_grad():
            tensor = getattr(module, tensor_name).detach().clone()
        originals = steps._originals()
        grad = any(original.requires_grad for original in originals)
        if any(isinstance(original, Parameter) for original in originals):
            tensor = Parameter(tensor, grad)
    names = tuple(name for name in target._parametrized if name != tensor_name)
    module.__class__ = _class(type_before_parametrizations(module), names)
    del target.parametrizations[tensor_name]
    if not names:
        del target.parametrizations
    _register(module, tensor_name, tensor)
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize the tensors of `to_module` as in `from_module`, and copy the original tensors.

    Both modules share the parametrizations. A tensor that `to_module` does not have is created as a parameter.

    Args:
        from_module: the parametrized module.
        to_module: the module to parametrize, which is returned.
        tensor_name: the name of one tensor; None selects all parametrized tensors.

    Raises:
        ValueError: the tensor of `from_module` is not parametrized, or the attribute of `to_module` with this name is
            neither a parameter nor a buffer.

    Example:
        >>> source, target = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3)), nn.Linear(2, 3)
        >>> _ = nn.utils.parametrize.transfer_parametrizations_and_params(source, target)
        >>> torch.equal(source.weight, target.weight)
        True
    """
    if not is_parametrized(from_module, tensor_name):
        raise ValueError(
            f"transfer_parametrizations_and_params(from_module): {type(from_module).__name__} has no parametrized "
            f"tensor{'' if tensor_name is None else ' ' + repr(tensor_name)}"
        )
    source: Any = from_module
    for name in source._parametrized if tensor_name is None else (tensor_name,):
        steps = source.parametrizations[name]
        if not is_parametrized(to_module, name) and not hasattr(to_module, name):
            with core.no_grad():
                _register(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for step in steps:
            register_parametrization(to_module, name, step, unsafe=steps.unsafe)
        for theirs, ours in zip(
            steps._originals(), to_module.parametrizations[name]._originals(), strict=True
        ):
            _replace(ours, theirs)
    return to_module


__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]
