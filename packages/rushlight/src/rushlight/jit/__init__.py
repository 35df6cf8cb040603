"""TorchScript's names. `trace` records the program of a module for `save`; there is no compiler of Python's source.

What a program asks is answered (`is_scripting()` is false), and what it decorates is given back (decision 0023). Traced
modules run as Python in this process, and as data where they are loaded (decision 0041).
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
    """Return whether this is compiled code: no."""
    return False


def script(
    obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> T:
    """`obj`, a function, a module or a class, as it is."""
    if not callable(obj):
        raise TypeError(f"jit.script(obj): needs a function, a module or a class, got {type(obj).__name__}")
    return obj


def script_if_tracing(fn: T) -> T:
    """`fn` as it is."""
    return fn


_script_if_tracing = script_if_tracing


def export(fn: T) -> T:
    """`fn` as it is."""
    return fn


script_method: Callable[[T], T] = export
interface: Callable[[T], T] = export


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return the function as it is; with arguments, a decorator."""
    return drop if callable(drop) else export


def unused(fn: T) -> T:
    """`fn` as it is."""
    return fn


def _overload(func: T) -> T:
    return func


_overload_method = _overload


def _get_trace_graph(f: Any, args: Any = (), kwargs: Any = None, *rest: Any, **options: Any) -> NoReturn:
    raise NotImplementedError(
        "jit: programs have no TorchScript graph\nhint: fx.symbolic_trace has one, and print(export(...)) shows operators"
    )


def annotate(the_type: Any, the_value: T) -> T:
    """`the_value`."""
    return the_value


def Attribute(value: T, type: Any) -> T:
    """`value`."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether `obj` is of a class; of a type with arguments, such as `list[int]`, only the class is asked."""
    kinds = target_type if _is(target_type, tuple) else (target_type,)
    return any(_is(obj, getattr(kind, "__origin__", kind)) for kind in kinds)


def _unwrap_optional(x: T | None) -> T:
    assert x is not None, "Unwrapping null optional"
    return x


def freeze(mod: T, preserved_attrs: Any = None, optimize_numerics: bool = True) -> T:
    """`mod` as it is."""
    return mod


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """`mod` as it is."""
    return mod


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block; nothing is done."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block; nothing is done."""
    yield


strict_fusion = fuser


def enable_onednn_fusion(enabled: bool) -> None:
    """Accepted; nothing is done."""


def onednn_fusion_enabled() -> bool:
    """Return whether compiled code uses oneDNN: there is none."""
    return False


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Accepted; nothing is done. The strategy of before: none."""
    return []


class _Done:
    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        """Return the result."""
        return self._value


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> _Done:
    """Call `func` now; `wait` gives its result. Python's own `fork` runs in the calling thread too."""
    return _Done(func(*args, **kwargs))


def wait(future: _Done) -> Any:
    """Return the result of what was forked."""
    return future.wait()
