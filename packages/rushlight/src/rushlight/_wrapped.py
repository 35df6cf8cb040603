"""Helpers for modules that re-export another package's names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def names_of(package: ModuleType, module: str = "") -> Callable[[str], object]:
    """Return a `__getattr__` function, which looks up names in `package`, including names that are loaded on first use.

    Special names such as `__path__` raise AttributeError, because a module with the `__path__` of `package`
    would import the submodules of `package` a second time. If `module` is given, a submodule of `module`
    takes precedence over a submodule of `package` with the same name, which may define fewer names.
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
    """Import submodules that have the same names as functions, and keep the names bound to the functions.

    A later import of such a submodule does not replace the function, because the submodule is already loaded.
    """
    shown = vars(sys.modules[module])
    for name in names:
        function = shown.pop(name, None)
        import_module(f"{module}.{name}")
        del shown[name]
        if function is not None:
            shown[name] = function
