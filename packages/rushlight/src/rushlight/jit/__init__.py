"""TorchScript's names. There is no such compiler: functions and modules stay what they are, and run as Python.

What a program asks is answered (`is_scripting()` is false), what it decorates is given back, and what only a compiled
program could do, `save` and `load`, raises NotImplementedError. Decision 0023 has the reasons.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

from rushlight_nn import Module

__all__ = [
    "Attribute",
    "Final",
    "ScriptFunction",
    "ScriptModule",
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


class ScriptModule(Module):
    """A base for modules that were written to be compiled: a `Module`. `script(module)` is none."""


class ScriptFunction:
    """A function that was compiled: there is none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("jit.ScriptFunction(): there is no TorchScript compiler")


class TracerWarning(Warning):
    """What a tracer warns of: never, as nothing is traced."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing."""


def is_scripting() -> bool:
    """Whether this is compiled code: no."""
    return False


def is_tracing() -> bool:
    """Whether calls are being traced: no."""
    return False


def script(
    obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> T:
    """`obj`, a function, a module or a class, as it is."""
    if not callable(obj):
        raise TypeError(f"jit.script(obj): needs a function, a module or a class, got {type(obj).__name__}")
    return obj


def trace(
    func: T,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    *,
    example_kwarg_inputs: dict[str, Any] | None = None,
) -> T:
    """`func` as it is, after one call with the example inputs. Warns once that nothing is recorded.

    For other inputs, too, it does what its code says, not what was done for `example_inputs`: branches are taken anew.
    There is no second program to check or to optimise, so `optimize`, `check_*` and `strict` have nothing to act on.

    Args:
        func: a function or a module.
        example_inputs: a tuple of positional arguments, or one that is no tuple.
        example_kwarg_inputs: arguments by name, in their place.

    Raises:
        TypeError: `func` cannot be called.
        RuntimeError: no example inputs are given.
    """
    if not callable(func):
        raise TypeError(f"jit.trace(func): needs a function or a module, got {type(func).__name__}")
    if (example_inputs is None) == (example_kwarg_inputs is None):
        raise RuntimeError("jit.trace(): needs either example_inputs or example_kwarg_inputs")
    _warn_that_nothing_is_recorded()
    if example_kwarg_inputs is not None:
        func(**example_kwarg_inputs)
    else:
        func(*(example_inputs if _is(example_inputs, (tuple, list)) else (example_inputs,)))
    return func


def trace_module(
    mod: T,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
) -> T:
    """`mod` as it is, after one call of each of its methods that `inputs` names, with these inputs; see :func:`trace`."""
    if not _is(inputs, dict):
        raise AttributeError(f"jit.trace_module(inputs): must be a dict, got {type(inputs).__name__}")
    _warn_that_nothing_is_recorded()
    for name, arguments in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        method(*(arguments if _is(arguments, (tuple, list)) else (arguments,)))  # type: ignore[operator]
    return mod


_warned = False


def _warn_that_nothing_is_recorded() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "jit.trace: there is no tracer of programs; the function runs as Python, and takes its branches anew",
            stacklevel=3,
        )


def script_if_tracing(fn: T) -> T:
    """`fn` as it is."""
    return fn


_script_if_tracing = script_if_tracing


def export(fn: T) -> T:
    """`fn` as it is."""
    return fn


script_method = interface = export


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function as it is; with arguments, a decorator."""
    return drop if callable(drop) else export


def unused(fn: T) -> T:
    """`fn` as it is."""
    return fn


def _overload(func: T) -> T:
    return func


_overload_method = _overload


def _get_trace_graph(f: Any, args: Any = (), kwargs: Any = None, *rest: Any, **options: Any) -> NoReturn:
    raise NotImplementedError(
        "jit: there is no tracer of programs\nhint: hooks of modules see their inputs and results"
    )


def annotate(the_type: Any, the_value: T) -> T:
    """`the_value`."""
    return the_value


def Attribute(value: T, type: Any) -> T:
    """`value`."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether `obj` is of a class; of a type with arguments, such as `list[int]`, only the class is asked."""
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
    """Whether compiled code uses oneDNN: there is none."""
    return False


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Accepted; nothing is done. The strategy of before: none."""
    return []


class _Done:
    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        """The result."""
        return self._value


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> _Done:
    """Calls `func` now; `wait` gives its result. Python's own `fork` runs in the calling thread too."""
    return _Done(func(*args, **kwargs))


def wait(future: _Done) -> Any:
    """The result of what was forked."""
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raises NotImplementedError: there is no compiled program to save."""
    raise NotImplementedError(
        "jit.save(): there is no TorchScript compiler\nhint: torch.save(model.state_dict(), f) saves the weights"
    )


def load(
    f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False
) -> NoReturn:
    """Raises NotImplementedError: a compiled program cannot be run."""
    raise NotImplementedError(
        "jit.load(): TorchScript programs cannot be run\nhint: make the model in Python and load its weights"
    )
