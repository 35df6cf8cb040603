"""Errors for names that a module does not have. The errors suggest the name that was probably meant.

Python itself suggests similar names only for objects with at most 750 attributes. The modules that contain all operators
have more.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Callable


class _Message:
    """The text of an error. A similar name is searched for only when the text is shown, so that `hasattr` stays fast."""

    def __init__(
        self,
        module: str,
        name: str,
        names: Callable[[], list[str]],
        hint: str,
        find: Callable[[str], str | None] | None,
    ) -> None:
        self._module, self._name, self._names, self._hint, self._find = module, name, names, hint, find

    def __str__(self) -> str:
        from difflib import get_close_matches

        found = self._find(self._name) if self._find else None
        hidden = self._name.startswith("_")
        names = [] if found else [name for name in self._names() if hidden or not name.startswith("_")]
        close = [found] if found else get_close_matches(self._name, names, n=1, cutoff=0.76)
        meant = f". Did you mean: {close[0]!r}?" if close else ""
        hint = f"\nhint: {self._hint}" if self._hint else ""
        return f"module {self._module!r} has no attribute {self._name!r}{meant}{hint}"

    __repr__ = __str__

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def missing(
    module: str,
    name: str,
    names: Callable[[], list[str]],
    hint: str = "",
    find: Callable[[str], str | None] | None = None,
) -> AttributeError:
    """Return the AttributeError for a name that a module does not have.

    `find(name)` returns the full dotted path under which another module defines `name`, or None. The error suggests this
    path or, if there is none, a similar name from `names()`. `hint` is the second line of the message.
    """
    return AttributeError(_Message(module, name, names, hint, find))
