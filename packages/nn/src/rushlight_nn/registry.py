"""The ordered tables of a module: its parameters, buffers and children.

Note [Attributes of a module]
A module keeps parameters, buffers and children in three ordered tables (`_parameters`, `_buffers`, `_modules`). Methods such
as `state_dict` and `parameters` read these tables. Access to `self.weight` must be as fast as access to any other attribute,
so every entry is *also* an ordinary attribute of the instance. Module defines no `__getattr__`, because that would slow down
every attribute access and hide AttributeErrors raised inside properties. The code that creates a module sets attributes by
`object.__setattr__` and does not access `module.__dict__`, because after such an access CPython 3.11 looks attributes up in
a dictionary, which takes four times as long.

A class that defines `__getattr__`, `__setattr__` or `__delattr__` itself (Pyro's `PyroModule`, wrappers that forward
attributes) expects PyTorch's lookup, in which entries are found only through `__getattr__`. The tables of its modules are
therefore plain dictionaries, whose entries are not attributes of the instance. `Module._mirrors` detects such classes
whenever a class or an object is created, and sets their attribute `_mirrored` to False. Existing modules of
such a class keep their tables.

Each table updates the attributes of its module, because programs edit the tables directly (`module._parameters["w"] = p`,
`del module._parameters["w"]`). A table refers to its module by a weak reference. A strong reference would create a cycle,
and the memory of an unused model would not be freed until the garbage collector runs. Copies and pickles contain plain
dicts, which `Module.__setstate__` converts back to tables.
"""

from __future__ import annotations

import weakref

from ._typing import Any

TABLES = ("_parameters", "_buffers", "_modules")
_ABSENT = object()


class Registry(dict[str, Any]):
    """An ordered dictionary of a module's entries, which are also set as attributes of the module."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)

    def belongs_to(self, module: Any) -> bool:
        """Return whether this is a table of `module`, and not of a module from which `module` was copied."""
        return self._owner() is module

    def _unmirror(self, name: str, value: Any) -> None:
        owner = self._owner()
        if owner is not None and owner.__dict__.get(name, _ABSENT) is value:
            del owner.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        owner = self._owner()
        if owner is None:
            return
        try:
            object.__setattr__(owner, name, value)
        except AttributeError:
            # The owner's class has a property of this name without a setter; reading the attribute calls the property.
            if not isinstance(getattr(type(owner), name, None), property):
                raise

    def __delitem__(self, name: str) -> None:
        value = self[name]
        super().__delitem__(name)
        self._unmirror(name, value)

    def pop(self, name: str, *default: Any) -> Any:
        if name not in self:
            return super().pop(name, *default)
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        name, value = super().popitem()
        self._unmirror(name, value)
        return name, value

    def clear(self) -> None:
        for name in list(self):
            del self[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def __ior__(self, other: Any) -> Registry:  # type: ignore[override, misc]
        self.update(other)
        return self

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def copy(self) -> dict[str, Any]:
        return dict(self)

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()


def install(module: Any, name: str, entries: dict[str, Any]) -> None:
    """Replace the table `name` of `module` by `entries`.

    If the entries of `module` are also its attributes (`_mirrored`), the new table is a `Registry` with a copy of `entries`.
    Otherwise, the new table is `entries` itself.
    """
    attributes = module.__dict__
    old = attributes.get(name)
    if isinstance(old, dict):
        for key, value in old.items():
            if attributes.get(key, _ABSENT) is value:
                del attributes[key]
    if not module._mirrored:
        attributes[name] = entries
        return
    table = attributes[name] = Registry(module)
    table.update(entries)
