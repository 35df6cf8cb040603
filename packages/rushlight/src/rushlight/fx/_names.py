"""Find the public names of functions, such as `torch.nn.functional.relu`, `operator.add` and `math.sqrt`."""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

import rushlight

# The modules in which a name is searched, in this order.
_FOLDERS = ("", "nn.functional", "linalg", "special", "fft", "func", "nn", "nn.init", "autograd")


@functools.cache
def _ours() -> dict[int, str]:
    found: dict[int, str] = {}
    for folder in _FOLDERS:
        module = importlib.import_module(f"rushlight.{folder}" if folder else "rushlight")
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                found.setdefault(id(value), f"torch.{folder}.{name}" if folder else f"torch.{name}")
    return found


def name_of(function: Callable[..., Any]) -> str | None:
    """Return a dotted name under which the function can be imported, or None."""
    if (name := _ours().get(id(function))) is not None:
        return name
    simple = getattr(function, "__name__", None)
    if simple is None:
        return None
    if getattr(builtins, simple, None) is function:
        return str(simple)
    module = getattr(function, "__module__", None)
    if module is None:  # a method of Tensor
        return f"torch.Tensor.{simple}" if getattr(rushlight.Tensor, simple, None) is function else None
    if module == "_operator":
        module = "operator"
    value: Any = sys.modules.get(module)
    qualified = getattr(function, "__qualname__", simple)
    for part in qualified.split("."):
        value = getattr(value, part, None)
    return f"{module}.{qualified}" if value is function else None
