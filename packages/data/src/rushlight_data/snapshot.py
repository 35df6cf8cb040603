"""Snapshots of objects, to detect whether their state has changed.

Note [Snapshots]
A worker has a copy of the dataset, made when the worker started. Workers can be kept for another epoch, and can read batches
of that epoch before it begins, only if nothing has changed in between. A snapshot walks over everything that is reachable
from the dataset, the collate function and the other arguments of workers: attributes, containers, the elements of tensors
and arrays, closures, the attributes of classes, and the globals that functions use. The snapshot keeps one entry per mutable
object: the object, and references to its parts. To detect a change, the current parts of each object are compared with these
references by identity. Replacing a value by an equal value therefore counts as a change: the loader starts new workers,
which takes time, but the samples stay the same. The settings of the process are compared as well (`process_settings.py`).

A snapshot includes the state of objects whose classes belong to the standard library or to installed
packages, but not the functions and classes of these libraries. A snapshot has `known = False` if it contains
an object whose state cannot be read (a file, a lock, shared memory that is neither a tensor nor an array), or
if it contains more objects than can be compared in a few milliseconds. The loader may miss changes of a
dataset whose snapshot has `known = False`.

The globals of a function are found by the names in its code (`named_values.py`). A snapshot also has `known = False` if it
contains code that may use other globals: code that calls `eval` or `globals`, for example, or that passes a module to
another function, as in `getattr(module, name)`.
"""

from __future__ import annotations

import array
import collections
import copyreg
import enum
import functools
import itertools
import mmap
import operator
import pathlib
import pickle
import random
import re
import types
from collections.abc import Callable, Iterable
from typing import Any

import rushlight_core as core

from .named_values import MISSING, is_library, may_use_others, named_values
from .process_settings import process_settings
from .random_streams import imported_numpy

_OBJECTS = 10_000
_ITEMS = 1_000_000  # limit for the items of lists of plain values
_BYTES = 16 << 20

_PLAIN: frozenset[type] = frozenset({
    type(None), bool, int, float, complex, str, bytes, range, slice, type(...), type(NotImplemented),
    core.dtype, core.device, re.Pattern, object,
    types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ClassMethodDescriptorType, types.CodeType,
})  # fmt: skip


class Snapshot:
    """The state of `roots` and of everything reachable from them. See Note [Snapshots].

    `known` is True if the whole state could be read. If `known` is False, `changed` may miss changes."""

    def __init__(self, *roots: Any) -> None:
        self.known: bool = True
        self._entries: list[tuple[Callable[[Any], list[Any]], Any, list[Any]]] = []
        self._contents: list[tuple[Any, bytes]] = []
        self._seen: dict[int, Any] = {}  # keeps the objects, so that no new object gets the same id()
        self._items = self._bytes = 0
        self._stack: list[Any] = list(roots)
        self._settings = process_settings()
        self._names_all = True  # whether the code refers to all globals that it uses by name
        try:
            while self._stack and self.known:
                self._visit(self._stack.pop())
        except Exception:  # an object that raises when it is inspected, such as a proxy
            self.known = False
        if not self.known:
            self._entries.clear()
            self._contents.clear()
            self._seen.clear()
        self.known = self.known and self._names_all

    def changed(self) -> bool:
        """Return whether anything has changed since the snapshot was made."""
        try:
            if process_settings() != self._settings:
                return True
            for parts_of, obj, parts in self._entries:
                now = parts_of(obj)
                if len(now) != len(parts) or not all(map(operator.is_, now, parts)):
                    return True
            return any(_content(obj) != content for obj, content in self._contents)
        except Exception:  # an object that can no longer be inspected
            return True

    def _visit(self, obj: Any) -> None:
        kind: Any = type(obj)
        if kind in _PLAIN or id(obj) in self._seen or isinstance(obj, (enum.Enum, pathlib.PurePath)):
            return
        self._seen[id(obj)] = obj
        if len(self._seen) > _OBJECTS:
            self.known = False
        elif isinstance(obj, type):
            self._visit_class(obj)
        elif isinstance(obj, types.FunctionType):
            if not is_library(obj.__module__):
                self._visit_function(obj)
        elif isinstance(obj, types.BuiltinFunctionType):
            if not isinstance(obj.__self__, types.ModuleType):
                self._stack.append(obj.__self__)
        elif isinstance(obj, types.MethodType):
            self._stack += (obj.__func__, obj.__self__)
        elif isinstance(obj, types.ModuleType) and is_library(obj.__name__):
            pass  # values of libraries are followed only where code names them
        elif isinstance(obj, (staticmethod, classmethod)) or kind is functools._lru_cache_wrapper:
            self._stack.append(obj.__wrapped__)
        elif isinstance(obj, property):
            self._stack += (obj.fget, obj.fset)
        elif kind is functools.partial:
            self._stack += (obj.func, obj.args)
            self._add(_values, obj.keywords)
        elif kind is types.CellType:
            self._visit_cell(obj)
        elif _is_read_only(obj):
            pass
        elif _has_content(obj):
            self._add_content(obj)
        elif isinstance(obj, (tuple, frozenset)):
            self._push(obj, len(obj))
            self._visit_attributes(obj)
        elif isinstance(obj, (list, collections.deque)):
            if type(obj).__iter__ in (list.__iter__, collections.deque.__iter__):
                self._visit_items(obj)
                self._visit_attributes(obj)
            else:
                self.known = False
        elif isinstance(obj, dict):
            self._add(_dict_parts, obj)
            self._visit_attributes(obj)
        elif isinstance(obj, set):
            # The order of a set stays the same as long as the set is not changed.
            self._add(_set_parts, obj)
        elif _has_only_attributes(kind):
            self._stack.append(kind)
            self._visit_attributes(obj)
        else:
            self.known = False

    def _add(self, parts_of: Callable[[Any], list[Any]], obj: Any) -> None:
        parts = parts_of(obj)
        self._entries.append((parts_of, obj, parts))
        self._push(parts, len(parts))

    def _visit_function(self, function: types.FunctionType) -> None:
        self._entries.append((_function_parts, function, _function_parts(function)))
        parts = _arguments_and_cells(function)
        parts += (named.value for named in named_values(function) if named.followed)
        self._push(parts, len(parts))
        self._names_all = self._names_all and not may_use_others(function)

    def _visit_cell(self, cell: types.CellType) -> None:
        parts = _cell_parts(cell)
        self._entries.append((_cell_parts, cell, parts))
        # Modules are left out: the function of the cell refers to their attributes by name.
        self._push((part for part in parts if not isinstance(part, types.ModuleType)), len(parts))

    def _visit_items(self, obj: Any) -> None:
        items = list(obj)
        self._entries.append((list, obj, items))
        kinds = set(map(type, items))
        if tuple in kinds:
            inner = itertools.chain.from_iterable(item for item in items if type(item) is tuple)
            if set(map(type, inner)) <= _PLAIN:
                kinds.discard(tuple)
        self._push(items if not kinds <= _PLAIN else (), len(items))

    def _push(self, parts: Iterable[Any], count: int) -> None:
        self._items += count
        if self._items > _ITEMS:
            self.known = False
        self._stack += (part for part in parts if type(part) not in _PLAIN)

    def _visit_attributes(self, obj: Any) -> None:
        if hasattr(obj, "__dict__") or copyreg._slotnames(type(obj)):  # type: ignore[attr-defined]
            self._add(_attributes, obj)

    def _visit_class(self, kind: type) -> None:
        for base in kind.__mro__:
            if base is not object and not is_library(base.__module__):
                self._add(_class_parts, base)

    def _add_content(self, obj: Any) -> None:
        content = _content(obj) if _content_bytes(obj) <= _BYTES - self._bytes else None
        if content is None:
            self.known = False
        else:
            self._bytes += len(content)
            self._contents.append((obj, content))
            if isinstance(obj, core.Tensor):
                self._visit_attributes(obj)


def _values(obj: dict[Any, Any]) -> list[Any]:
    return list(obj.values())


def _dict_parts(obj: dict[Any, Any]) -> list[Any]:
    return [*dict.keys(obj), *dict.values(obj)]


def _set_parts(obj: set[Any]) -> list[Any]:
    return list(obj)


def _cell_parts(cell: types.CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # the cell is empty
        return []


def _attributes(obj: Any) -> list[Any]:
    own = getattr(obj, "__dict__", {})
    slots = copyreg._slotnames(type(obj))  # type: ignore[attr-defined]
    return [*own, *own.values(), *(getattr(obj, name, MISSING) for name in slots)]


def _class_parts(kind: type) -> list[Any]:
    return [
        value
        for name, value in vars(kind).items()
        if name not in ("__dict__", "__weakref__", "__doc__", "_abc_impl", "__parameters__", "__orig_bases__")
        and not name.startswith("__slot")
    ]


def _function_parts(function: types.FunctionType) -> list[Any]:
    values = [named.value for named in named_values(function)]
    return [function.__code__, *_arguments_and_cells(function), *values]


def _arguments_and_cells(function: types.FunctionType) -> list[Any]:
    return [
        *(function.__defaults__ or ()),
        *(function.__kwdefaults__ or {}).values(),
        *(function.__closure__ or ()),
    ]


def _has_content(obj: Any) -> bool:
    kinds = (core.Tensor, core.Generator, random.Random, bytearray, array.array)
    if isinstance(obj, kinds):
        return True
    numpy = imported_numpy()
    return numpy is not None and isinstance(
        obj, (numpy.ndarray, numpy.generic, numpy.dtype, numpy.random.RandomState, numpy.random.Generator)
    )


def _is_read_only(obj: Any) -> bool:
    """Return whether an object is an array that cannot be written to in this process."""
    numpy = imported_numpy()
    if numpy is None or not isinstance(obj, numpy.ndarray) or obj.dtype.hasobject:
        return False
    while isinstance(obj, numpy.ndarray):
        if obj.flags.writeable:
            return False
        obj = obj.base
    return obj is None or isinstance(obj, (bytes, mmap.mmap))


def _content_bytes(obj: Any) -> int:
    if isinstance(obj, core.Tensor):
        return obj.numel() * obj.element_size()
    return int(getattr(obj, "nbytes", 0))


def _content(obj: Any) -> bytes | None:
    """Return the value of an object as bytes, for comparisons, or None if it cannot be converted to bytes."""
    if isinstance(obj, core.Tensor):
        if obj.device.type != "cpu" or obj.layout is not core.strided:
            return None
        data = (
            bytes(memoryview(obj.detach().contiguous().reshape(-1).view(core.uint8))) if obj.numel() else b""
        )
        return repr((obj.shape, obj.dtype, obj.requires_grad)).encode() + data
    if isinstance(obj, core.Generator):
        return bytes(obj.get_state().tolist())
    numpy = imported_numpy()
    if numpy is not None and isinstance(obj, numpy.ndarray):
        if obj.dtype.hasobject:
            return None
        return repr((obj.shape, obj.dtype, obj.strides)).encode() + obj.tobytes()
    try:
        return pickle.dumps(obj)
    except Exception:  # random.SystemRandom has no state
        return None


@functools.lru_cache(maxsize=1024)
def _has_only_attributes(kind: Any) -> bool:
    """Return whether the state of instances consists of `__dict__` and slots, without further fields in C."""
    slots = 0
    for base in kind.__mro__:
        names = vars(base).get("__slots__", ())
        slots += len({names} if isinstance(names, str) else {*names} - {"__dict__", "__weakref__"})
    pointers = slots + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    is_heap_type = bool(kind.__flags__ & 1 << 9)
    return (
        is_heap_type and kind.__itemsize__ == 0 and kind.__basicsize__ == object.__basicsize__ + 8 * pointers
    )
