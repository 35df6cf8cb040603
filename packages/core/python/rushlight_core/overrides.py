"""`__torch_function__`: classes that override operators.

A subclass of Tensor, or any other class, may define::

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None): ...

If an operator receives an instance of the class, `__torch_function__` is called instead of the operator.
`func` is the public function of that operator (a method of Tensor if there is no function), and `types` lists
the classes of arguments that define `__torch_function__`. If the method returns NotImplemented, the method of
the next class is called. `super().__torch_function__(...)` runs the operator.

If a function that is written in Python is decorated with `overridable`, `__torch_function__` is called for the function; for
other functions, it is called for each operator that the function calls.
"""

from __future__ import annotations

from _thread import _local

from . import _C
from ._C import DisableTorchFunctionSubclass, Tensor, overridable

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "DisableTorchFunctionSubclass",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "overridable",
]

MOST_REPEATS = 4  # a class may call the function again after its own state has changed
# Functions of the array API that differ from the operators of the same names, which are methods.
OTHER_FUNCTIONS = frozenset(("repeat",))

_disabled = _C._disabled_torch_function_impl
_asking = _local()  # per thread: the functions whose overrides are being called


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether the class of at least one argument overrides operators. Call it before `handle_torch_function`.

    Example:
        >>> torch.overrides.has_torch_function((torch.ones(1), 2))
        False
    """
    return _C._overrides_enabled() and any(_overrides(type(argument)) for argument in relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Compute a function by calling the `__torch_function__` methods of the classes of its arguments.

    Args:
        public_api: the function.
        relevant_args: the arguments whose classes define `__torch_function__`, in the order in which these methods are
            called.
        args, kwargs: all arguments of the call.

    Raises TypeError if every `__torch_function__` method returns NotImplemented.

    Example:
        >>> class Logged:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return f"{func.__name__} of {cls.__name__}"
        >>> torch.overrides.handle_torch_function(torch.sin, (Logged(),), Logged())
        'sin of Logged'
    """
    overloaded: list[Any] = []
    for argument in relevant_args:
        kind = type(argument)
        if not _overrides(kind) or any(type(o) is kind for o in overloaded):
            continue
        # Subclasses come first; otherwise the order is from left to right.
        at = next((i for i, o in enumerate(overloaded) if issubclass(kind, type(o))), len(overloaded))
        overloaded.insert(at, argument)
    return _call(public_api, overloaded, args, kwargs)


def is_tensor_like(inp: Any) -> bool:
    """Return whether an object is a Tensor, or defines `__torch_function__`.

    Example:
        >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1)
        (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def _overrides(kind: type) -> bool:
    if kind is Tensor:
        return False
    method = getattr(kind, "__torch_function__", None)
    return method is not None and method is not _disabled


def _call(func: Any, overloaded: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    types = tuple(type(o) for o in overloaded)
    for o in overloaded:
        if isinstance(o, Tensor):
            result = type(o).__torch_function__(func, types, args, kwargs)
        else:
            result = _ask(func, o, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = getattr(func, "__qualname__", getattr(func, "__name__", func))
    names = ", ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in types)
    raise TypeError(f"no implementation found for {name} on types that implement __torch_function__: {names}")


def _ask(func: Any, o: Any, types: tuple[type, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the `__torch_function__` method of the argument `o`, which is not a Tensor.

    Return NotImplemented if the method repeatedly calls `func` with `o`, as the default `__torch_function__` of tensor
    classes in other libraries does.
    """
    asked: list[tuple[Any, Any]] = _asking.__dict__.setdefault("asked", [])
    if sum(f is func and other is o for f, other in asked) >= MOST_REPEATS:
        return NotImplemented
    asked.append((func, o))
    try:
        return type(o).__torch_function__(func, types, args, kwargs)
    finally:
        asked.pop()


def _call_by_name(name: str, candidates: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the `__torch_function__` methods of `candidates`, because the C++ code cannot parse the arguments of a call."""
    return handle_torch_function(_function(name), candidates, *args, **kwargs)


def _function(name: str, method_first: bool = False) -> Any:
    """Return the function of the package or the method of Tensor with this name, or None if there is neither."""
    import rushlight_core

    homes = (Tensor, rushlight_core) if method_first or name in OTHER_FUNCTIONS else (rushlight_core, Tensor)
    found = [getattr(home, name) for home in homes if hasattr(home, name)]
    # Among the functions, `long` is a dtype; the operator is a method.
    return next((f for f in found if not isinstance(f, _C.dtype)), None)


class _Public:
    """The public function of an operator, and its parameters with their defaults."""

    def __init__(self, name: str, schema: str) -> None:
        base = name.partition(".")[0]
        self.function = _function(base, method_first=base.endswith("_"))
        self.parameters: list[tuple[str, bool, Any]] = []
        keyword_only = False
        for part in _split(schema[schema.index("(") + 1 : schema.rindex(") -> ")]):
            if part == "*":
                keyword_only = True
                continue
            declaration, _, default = part.partition("=")
            self.parameters.append((declaration.split()[-1], keyword_only, _literal(default)))

    def arguments(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and keyword arguments that give the function's parameters the values `values`.

        Keyword arguments and the last positional arguments are omitted if they equal their defaults.
        """
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        required = 0
        for (name, keyword_only, default), value in zip(self.parameters, values, strict=True):
            is_default = default is not ... and type(value) is type(default) and value == default
            if not keyword_only:
                args.append(value)
                if not is_default:
                    required = len(args)
            elif not is_default:
                kwargs[name] = value
        return tuple(args[:required]), kwargs


_public: dict[str, _Public] = {}


def _call_operator(name: str, schema: str, overloaded: list[Any], values: tuple[Any, ...]) -> Any:
    """Call `__torch_function__` for an operator; the dispatcher passes one value for each argument in the schema."""
    public = _public.get(name)
    if public is None:
        public = _public[name] = _Public(name, schema)
    if public.function is None:  # an internal operator, which cannot be overridden
        with DisableTorchFunctionSubclass():
            return _C._call_boxed(name, *values)
    args, kwargs = public.arguments(values)
    return _call(public.function, overloaded, args, kwargs)


def _split(text: str) -> list[str]:
    """Split a text at the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            if text[start:i].strip():
                parts.append(text[start:i].strip())
            start = i + 1
    return parts


def _literal(text: str) -> Any:
    """Return the value of a default from its text in a schema, or Ellipsis if the argument has no default."""
    if not text:
        return ...
    from ast import literal_eval

    try:
        return literal_eval(text)
    except ValueError:
        return float(text) if text in ("inf", "-inf", "nan") else text
