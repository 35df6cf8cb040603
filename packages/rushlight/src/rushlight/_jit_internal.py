"""Decorators and types of TorchScript that libraries import. These have no effect: code is not compiled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Dict, Final, List, Optional, Tuple, Union  # noqa: UP035  # what libraries import from here
from weakref import WeakKeyDictionary

from rushlight.jit import _overload, _overload_method, export, ignore, is_scripting, unused

__all__ = [
    "Any",
    "Dict",
    "Final",
    "List",
    "Optional",
    "Tuple",
    "Union",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]

_drop = unused
_overload = _overload
_overload_method = _overload_method
# The functions that `boolean_dispatch` returned, with the two functions that each selects from.
boolean_dispatched: WeakKeyDictionary[Callable[..., Any], dict[str, Any]] = WeakKeyDictionary()


class _BroadcastingList:
    def __getitem__(self, types: Any) -> None:
        return None


for _length in range(1, 7):
    globals()[f"BroadcastingList{_length}"] = _BroadcastingList()


def _copy_to_script_wrapper(fn: Any) -> Any:
    return fn


def _disable_emit_hooks() -> nullcontext[None]:
    return nullcontext()


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Any,
    if_false: Any,
    module_name: Any,
    func_name: Any,
) -> Callable[..., Any]:
    """Return a function that calls `if_true` if the argument `arg_name` is true, and `if_false` otherwise."""

    def choose(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    choose.__doc__ = if_true.__doc__ or if_false.__doc__
    if func_name is not None:
        choose.__name__ = func_name
    if module_name is not None:
        choose.__module__ = module_name
    boolean_dispatched[choose] = {
        "if_true": if_true,
        "if_false": if_false,
        "index": arg_index,
        "default": default,
        "arg_name": arg_name,
    }
    return choose


def module_has_exports(mod: Any) -> bool:
    """Return False: no method is marked for compilation."""
    return False


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}: rushlight does not compile TorchScript"
    )
