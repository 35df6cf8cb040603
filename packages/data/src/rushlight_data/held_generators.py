"""Find random generators in a dataset, because every worker would have a copy in the same state."""

from __future__ import annotations

import collections
import contextlib
import copyreg
import functools
import itertools
import random
import types
import warnings
from collections.abc import Iterator
from typing import Any

import rushlight_core as core

from .dataset import _draws_random
from .named_values import is_library, named_values
from .random_streams import imported_numpy
from .snapshot import _PLAIN

_OBJECTS = 10_000
_ITEMS = 1000  # limit for the items of one container
# Methods that workers do not call on the dataset and on the objects that it holds.
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")


def warn_of_generators(dataset: Any) -> None:
    """Warn if a dataset contains generators, because their copies draw the same numbers in every worker."""
    if not _draws_random(dataset):
        return
    paths = [f"{path} ({type(found).__name__})" for path, found in _find(dataset)]
    if paths:
        warnings.warn(
            f"DataLoader(dataset): each worker has a copy of {', '.join(paths)} and draws the same numbers as "
            "the other workers\n"
            "In __getitem__, use random, numpy.random or the default generator of rushlight, which the loader seeds "
            "for each batch, or create the generator in worker_init_fn from get_worker_info().seed. Set "
            "draws_random = False in a dataset that draws no random numbers.",
            stacklevel=4,
        )


def _find(dataset: Any) -> Iterator[tuple[str, Any]]:
    kinds: tuple[type, ...] = (random.Random, core.Generator)
    # Generators that the loader itself seeds, or that have no state.
    exempt = [random._inst, core.default_generator]
    numpy = imported_numpy()
    if numpy is not None:
        kinds = (*kinds, numpy.random.RandomState, numpy.random.Generator)
        exempt.append(numpy.random.mtrand._rand)
    seen: dict[int, Any] = {}  # keeps the objects, so that no new object gets the same id()
    stack = [("dataset", dataset)]
    while stack and len(seen) < _OBJECTS:
        path, obj = stack.pop()
        if id(obj) in seen:
            continue
        seen[id(obj)] = obj
        # The class is read by type(), because the attribute `__class__` of a proxy is another class.
        kind = type(obj)
        if issubclass(kind, kinds):
            if kind is not random.SystemRandom and not any(obj is one for one in exempt):
                yield path, obj
            continue
        with contextlib.suppress(Exception):  # an object that raises when it is inspected
            parts = [(name, part) for name, part in _parts(path, obj) if type(part) not in _PLAIN]
            stack += reversed(parts)


def _parts(path: str, obj: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the objects that an object contains or uses, with a description of each."""
    kind = type(obj)
    if issubclass(kind, dict):
        for key, value in itertools.islice(dict.items(obj), _ITEMS):
            yield f"{path}[{key!r}]", value
    elif issubclass(kind, (list, tuple, collections.deque)):
        for i, value in enumerate(itertools.islice(obj, _ITEMS)):
            yield f"{path}[{i}]", value
    elif issubclass(kind, (set, frozenset)):
        for value in itertools.islice(obj, _ITEMS):
            yield f"an element of {path}", value
    elif issubclass(kind, functools.partial):
        yield f"{path}.func", obj.func
        yield f"{path}.args", obj.args
        yield f"{path}.keywords", obj.keywords
    elif issubclass(kind, (types.MethodType, types.BuiltinFunctionType)):
        yield f"{path}.__self__", obj.__self__
        yield path, getattr(obj, "__func__", None)
    elif issubclass(kind, (staticmethod, classmethod)):
        yield path, obj.__func__
    elif issubclass(kind, property):
        yield path, obj.fget
    elif issubclass(kind, types.FunctionType):
        yield from _parts_of_function(path, obj)
    elif issubclass(kind, type):
        yield from _parts_of_class(path, obj)
        return
    elif issubclass(kind, types.ModuleType) and is_library(obj.__name__):
        return
    for name, value in getattr(obj, "__dict__", {}).items():
        yield f"{path}.{name}", value
    for name in copyreg._slotnames(kind):  # type: ignore[attr-defined]
        yield f"{path}.{name}", getattr(obj, name, None)
    yield path, kind


def _parts_of_function(path: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    if is_library(function.__module__):
        return
    defaults = function.__defaults__ or ()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    by_name = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    for name, value in (by_name | (function.__kwdefaults__ or {})).items():
        yield f"the default of {name} of {path}", value
    for name, value, followed in named_values(function):
        if followed:
            yield f"the variable {name} of {path}", value


def _parts_of_class(path: str, kind: type) -> Iterator[tuple[str, Any]]:
    for base in kind.__mro__:
        if not is_library(base.__module__):
            for name, value in vars(base).items():
                if name not in _CONSTRUCTORS:
                    yield f"{path}.{name}", value
