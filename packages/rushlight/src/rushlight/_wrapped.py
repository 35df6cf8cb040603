"""Helpers of the modules that re-export another package's names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def names_of(package: ModuleType, module: str = "") -> Callable[[str], object]:
    """Return a module's `__getattr__` that finds the names of `package`, including names that are loaded on first use.

    Special names such as `__path__` are not found in `package`: with its path, its submodules would be imported a
    second time. If `module` is given, the files of that module take precedence over those of `package`, which may
    have fewer names.
    """

    def find(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")
        value = getattr(package, name, None)
        if module and (value is None or isinstance(value, ModuleType)):
            try:
                return import_module(f"{module}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{module}.{name}":
                    raise
        return getattr(package, name)

    return find


def load_namesakes(module: str, *names: str) -> None:
    """Load the files of a module that have the same names as functions, and keep the names bound to the functions.

    A later import does not replace a function by a file that is already loaded.
    """
    shown = vars(sys.modules[module])
    for name in names:
        function = shown.pop(name, None)
        import_module(f"{module}.{name}")
        del shown[name]
        if function is not None:
            shown[name] = function
