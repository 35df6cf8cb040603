"""TorchScript's functions. `trace` records the operators that a module calls, and `save` writes the recorded program.

Python source is not compiled: `is_scripting` returns False, and decorators such as `script` return their argument unchanged.
A traced module runs its Python code. A module that was loaded from a file runs the recorded program. See decisions 0023
and 0041.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

from rushlight.jit._loaded import ScriptModule, load
from rushlight.jit._traced import (
    ScriptFunction,
    TopLevelTracedModule,
    TracerWarning,
    is_tracing,
    save,
    trace,
    trace_module,
)

__all__ = [
    "Attribute",
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

T = TypeVar("T")
_is = isinstance


def is_scripting() -> bool:
    """Return False: code is not compiled.

    Example:
        >>> torch.jit.is_scripting()
        False
    """
    return False


def script(
    obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> T:
    """Return a function, a module or a class unchanged: code is not compiled.

    Args:
        obj: the function, module or class.
        optimize, _frames_up, _rcb, example_inputs: have no effect.

    Raises:
        TypeError: `obj` is not callable.

    Example:
        >>> @torch.jit.script
        ... def double(x):
        ...     return 2 * x
        >>> double(torch.tensor([1.0]))
        tensor([2.])
    """
    if not callable(obj):
        raise TypeError(f"jit.script(obj): needs a function, a module or a class, got {type(obj).__name__}")
    return obj


def script_if_tracing(fn: T) -> T:
    """Return `fn` unchanged.

    Example:
        >>> torch.jit.script_if_tracing(len) is len
        True
    """
    return fn


_script_if_tracing = script_if_tracing


def export(fn: T) -> T:
    """Return `fn` unchanged.

    Example:
        >>> torch.jit.export(len) is len
        True
    """
    return fn


script_method: Callable[[T], T] = export
interface: Callable[[T], T] = export


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a function unchanged or, if called with options, return a decorator that returns its function unchanged.

    Example:
        >>> @torch.jit.ignore(drop=True)
        ... def double(x):
        ...     return 2 * x
        >>> double(3)
        6
    """
    return drop if callable(drop) else export


def unused(fn: T) -> T:
    """Return `fn` unchanged.

    Example:
        >>> torch.jit.unused(len) is len
        True
    """
    return fn


def _overload(func: T) -> T:
    return func


_overload_method = _overload


def _get_trace_graph(f: Any, args: Any = (), kwargs: Any = None, *rest: Any, **options: Any) -> NoReturn:
    raise NotImplementedError(
        "jit: programs have no TorchScript graph\nhint: use fx.symbolic_trace, or print(export(...)) to see operators"
    )


def annotate(the_type: Any, the_value: T) -> T:
    """Return `the_value` unchanged, and ignore `the_type`.

    Example:
        >>> torch.jit.annotate(list[int], [])
        []
    """
    return the_value


def Attribute(value: T, type: Any) -> T:
    """Return `value` unchanged, and ignore `type`.

    Example:
        >>> torch.jit.Attribute(0.5, float)
        0.5
    """
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether `obj` is an instance of a class or of one of several classes.

    For a type with arguments, such as `list[int]`, only the class is checked.

    Example:
        >>> torch.jit.isinstance(["a"], list[int]), torch.jit.isinstance(1, (str, float))
        (True, False)
    """
    kinds = target_type if _is(target_type, tuple) else (target_type,)
    return any(_is(obj, getattr(kind, "__origin__", kind)) for kind in kinds)


def _unwrap_optional(x: T | None) -> T:
    assert x is not None, "Unwrapping null optional"
    return x


def freeze(mod: T, preserved_attrs: Any = None, optimize_numerics: bool = True) -> T:
    """Return `mod` unchanged.

    Example:
        >>> model = nn.Linear(2, 2).eval()
        >>> torch.jit.freeze(model) is model
        True
    """
    return mod


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """Return `mod` unchanged.

    Example:
        >>> model = nn.Linear(2, 2).eval()
        >>> torch.jit.optimize_for_inference(model) is model
        True
    """
    return mod


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Context manager without effect: code is not compiled.

    Example:
        >>> with torch.jit.optimized_execution(False):
        ...     x = torch.ones(2)
    """
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """Context manager without effect: code is not compiled.

    Example:
        >>> with torch.jit.fuser("fuser2"):
        ...     x = torch.ones(2)
    """
    yield


strict_fusion = fuser


def enable_onednn_fusion(enabled: bool) -> None:
    """No-op: code is not compiled.

    Example:
        >>> torch.jit.enable_onednn_fusion(True)
    """


def onednn_fusion_enabled() -> bool:
    """Return False: code is not compiled.

    Example:
        >>> torch.jit.onednn_fusion_enabled()
        False
    """
    return False


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Ignore the strategy, and return an empty list instead of the previous strategy: code is not compiled.

    Example:
        >>> torch.jit.set_fusion_strategy([("DYNAMIC", 2)])
        []
    """
    return []


class _Done:
    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        """Return the result."""
        return self._value


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> _Done:
    """Call `func` immediately, and return a future with its result, as PyTorch does in code that is not compiled.

    Example:
        >>> future = torch.jit.fork(torch.add, torch.tensor([1.0]), 2)
        >>> torch.jit.wait(future)
        tensor([3.])
    """
    return _Done(func(*args, **kwargs))


def wait(future: _Done) -> Any:
    """Return the result of `future`, which `fork` returned.

    Example:
        >>> torch.jit.wait(torch.jit.fork(len, [1, 2]))
        2
    """
    return future.wait()
