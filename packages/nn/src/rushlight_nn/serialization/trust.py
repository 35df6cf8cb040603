"""The classes and functions that the user allows a pickle to call.

All other names in a pickle must be in the table of :mod:`names`, whose classes and functions only construct
data; a name that is not in the table raises an error. A file can therefore make :func:`load` call only the
classes and functions of the table and those that the user allowed.
"""

from __future__ import annotations

from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

# Name in the pickle -> (object, the entry as it was given). The table holds the objects, so no name is imported.
_allowed: dict[str, tuple[Any, Any]] = {}


def _named(entries: Sequence[Any]) -> dict[str, tuple[Any, Any]]:
    named = {}
    for entry in entries:
        value, name = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
        if name is None:
            name = f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', None)}"
        if not callable(value) or not isinstance(name, str):
            raise TypeError(
                "add_safe_globals(safe_globals): needs classes or functions, or pairs of an object and its name in the "
                f"file, got {entry!r}"
            )
        named[name] = (value, entry)
    return named


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Allow :func:`load` to call these classes and functions, and to set the state of instances of these classes.

    Args:
        safe_globals: classes and functions, or pairs of a class or function and its full name in files, such as
            "module.name".

    Raises:
        TypeError: an element is neither a class or function nor a pair of a class or function and a name.

    Example:
        >>> class Settings:
        ...     def __init__(self, rate):
        ...         self.rate = rate
        >>> torch.serialization.add_safe_globals([Settings])
        >>> torch.save(Settings(0.1), "settings.pt")
        >>> torch.load("settings.pt").rate
        0.1
        >>> torch.serialization.clear_safe_globals()
    """
    _allowed.update(_named(safe_globals))


def get_safe_globals() -> list[Any]:
    """Return the classes and functions that were passed to :func:`add_safe_globals`.

    Example:
        >>> torch.serialization.get_safe_globals()
        []
    """
    return [entry for _, entry in _allowed.values()]


def clear_safe_globals() -> None:
    """Remove all classes and functions that :func:`add_safe_globals` allowed.

    Example:
        >>> torch.serialization.clear_safe_globals()
        >>> torch.serialization.get_safe_globals()
        []
    """
    _allowed.clear()


class safe_globals:  # noqa: N801
    """Context manager that allows classes and functions during its block, as :func:`add_safe_globals` does.

    Args:
        safe_globals: classes and functions, or pairs of a class or function and its full name in files, such as
            "module.name".

    Raises:
        TypeError: an element is neither a class or function nor a pair of a class or function and a name.

    Example:
        >>> class Settings:
        ...     pass
        >>> with torch.serialization.safe_globals([Settings]):
        ...     len(torch.serialization.get_safe_globals())
        1
    """

    def __init__(self, safe_globals: Sequence[Any]) -> None:
        self._added = _named(safe_globals)
        self._before: list[dict[str, tuple[Any, Any]]] = []

    def __enter__(self) -> Self:
        self._before.append(dict(_allowed))
        _allowed.update(self._added)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        before = self._before.pop()
        for name in self._added:
            if name in before:
                _allowed[name] = before[name]
            else:
                _allowed.pop(name, None)


def allowed_by_name(name: str) -> Any:
    """Return the object that was allowed under `name`, or None."""
    found = _allowed.get(name)
    return None if found is None else found[0]


def is_allowed(value: Any) -> bool:
    """Return whether `value` is one of the allowed classes and functions, under any name."""
    return any(value is one for one, _ in _allowed.values())


def name_of(value: Any) -> tuple[str, str]:
    """Return the module and the name by which files refer to `value`."""
    for name, (one, entry) in _allowed.items():
        if one is value and isinstance(entry, tuple):
            module, _, short = name.rpartition(".")
            return module, short
    return value.__module__, value.__qualname__
