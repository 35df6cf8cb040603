"""Named tuples and enumerations of a user, made from their descriptions in a file instead of imported."""

from __future__ import annotations

import functools
from collections import namedtuple

from .._typing import Any
from .errors import FormatError


class Described:
    """The description, in a saved file, of a class that the user defined.

    If `fields` is a list of names, the class is a named tuple with these fields. If `fields` is None, the class is an
    enumeration.
    """

    def __init__(self, name: str, fields: Any) -> None:
        if fields is not None and not (isinstance(fields, list) and all(type(f) is str for f in fields)):
            raise FormatError(
                f"the description of the class {name!r:.80} must be None or a list of the names of its fields"
            )
        self.name = name
        self.fields = fields

    def make(self, arguments: tuple[Any, ...]) -> Any:
        """Return an instance of the named tuple, or the value of the enumeration member."""
        count = 1 if self.fields is None else len(self.fields)
        if len(arguments) != count:
            raise FormatError(f"a {self.name:.80} must be built from {count} values, got {len(arguments)}")
        return arguments[0] if self.fields is None else tuple_class(self.name, tuple(self.fields))(*arguments)


@functools.lru_cache(256)
def tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    """Return a named tuple class; only the part of `name` after the last dot is used.

    Raises:
        ValueError: a name is not valid for a class or a field, or there are more than 255 fields.
    """
    if len(fields) > 255:
        raise ValueError(f"a named tuple has {len(fields)} fields, needs at most 255")
    return namedtuple(name.rpartition(".")[2], fields)
