"""What the modules share that show another package's names."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType


def names_of(package: ModuleType) -> Callable[[str], object]:
    """A module's `__getattr__` that finds the names of `package`, also those that it loads when they are asked for.

    Names such as `__path__` are the package's own: with its path, modules below it would be imported a second time.
    """

    def find(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")
        return getattr(package, name)

    return find
