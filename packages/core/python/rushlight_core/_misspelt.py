"""Errors for names that a module does not have, with the name that was probably meant.

Python adds such a name by itself, but not where an object has more than 750 attributes. The modules with all operators
have more.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Callable


class _Message:
    """The text of an error, which looks for the similar name only when it is shown, so that `hasattr` stays fast."""

    def __init__(self, module: str, name: str, names: Callable[[], list[str]], hint: str) -> None:
        self._module, self._name, self._names, self._hint = module, name, names, hint

    def __str__(self) -> str:
        from difflib import get_close_matches

        close = get_close_matches(self._name, self._names(), n=1, cutoff=0.7)
        meant = f". Did you mean: {close[0]!r}?" if close else ""
        hint = f"\nhint: {self._hint}" if self._hint else ""
        return f"module {self._module!r} has no attribute {self._name!r}{meant}{hint}"

    __repr__ = __str__

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def missing(module: str, name: str, names: Callable[[], list[str]], hint: str = "") -> AttributeError:
    """Return the error of a module with the names `names()` for a name that it does not have; the hint is a second line."""
    return AttributeError(_Message(module, name, names, hint))
