"""Represent each value that JSON does not support as a name and parts that JSON supports.

User-defined named tuples and enumerations are stored by their contents. Instances of allowed classes
(:mod:`trust`) are loaded as instances of these classes. Any other named tuple is loaded as an instance of a
new named tuple class, and any other enumeration member as its value, because names in a file are never
imported.
"""

from __future__ import annotations

import base64
import datetime
import enum
import pathlib
from argparse import Namespace
from collections import OrderedDict, deque
from collections.abc import Callable

import rushlight_core as core
from rushlight_core._other_dtypes import OtherDtype

from .._typing import Any
from . import trust
from .described import tuple_class
from .dtypes import DTYPES, LAYOUTS, MEMORY_FORMATS
from .sparse import rebuild_sparse


class UnknownTag(Exception):  # noqa: N818
    """Raised if a file contains the name of a type that is not supported."""


def encode(value: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the name of a value's type and the parts from which `decode` makes the value again.

    Return None if the type is not supported.
    """
    kind = type(value)
    found = _ENCODERS.get(kind)
    if found is not None:
        return found(value)
    if isinstance(value, enum.Enum):
        return "enum", {"class": _class_name(kind), "value": value.value}
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        if _class_name(kind) == "rushlight_nn.utils.rnn.PackedSequence":
            return "PackedSequence", {"items": list(value)}
        return "namedtuple", {"class": _class_name(kind), "fields": list(kind._fields), "items": list(value)}
    if isinstance(value, pathlib.PurePath):
        name = "Path" if isinstance(value, pathlib.Path) else kind.__name__
        return "path", {"class": name, "value": str(value)}
    return None


def _class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def decode(tag: str, parts: dict[str, Any]) -> Any:
    """Return the value of the type called `tag` that `encode` split into `parts`.

    Raises:
        UnknownTag: no supported type has this name.
        LookupError, TypeError, ValueError or another exception: the parts do not fit the type.
    """
    found = _DECODERS.get(tag)
    if found is None:
        raise UnknownTag(tag)
    return found(**{name.replace("class", "kind"): part for name, part in parts.items()})


# Plain values -----------------------------------------------------------------------------------------------


def _int(value: str) -> int:
    return int(_text(value), 16)


def _float(value: str) -> float:
    return float(_text(value))


def _dtype(value: str) -> Any:
    return DTYPES[_text(value)]


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"got {type(value).__name__}, needs str")
    return value


def _bytes(value: str) -> bytes:
    return base64.b85decode(_text(value))


def _namespace(items: dict[str, Any]) -> Namespace:
    if type(items) is not dict or any(type(name) is not str or name.startswith("__") for name in items):
        raise TypeError("needs a dictionary of names")
    made = Namespace()
    vars(made).update(items)
    return made


def _path(kind: str, value: str) -> Any:
    kinds = {
        "Path": pathlib.Path,
        "PurePosixPath": pathlib.PurePosixPath,
        "PureWindowsPath": pathlib.PureWindowsPath,
    }
    return kinds[kind](_text(value))


def _duration(days: int, seconds: int, microseconds: int) -> datetime.timedelta:
    return datetime.timedelta(days, seconds, microseconds)


def _zone(offset: datetime.timedelta, name: str | None = None) -> datetime.timezone:
    return datetime.timezone(offset) if name is None else datetime.timezone(offset, name)


def _deque(items: list[Any], maxlen: int | None = None) -> deque[Any]:
    return deque(items, maxlen)


def _date_time(value: str, fold: int = 0) -> datetime.datetime:
    return datetime.datetime.fromisoformat(_text(value)).replace(fold=fold)


def _time(value: str, fold: int = 0) -> datetime.time:
    return datetime.time.fromisoformat(_text(value)).replace(fold=fold)


def _encode_time(value: Any) -> tuple[str, dict[str, Any]] | None:
    if value.tzinfo is not None and type(value.tzinfo) is not datetime.timezone:
        return None
    parts = {"value": value.isoformat()}
    return type(value).__name__, {**parts, "fold": value.fold} if value.fold else parts


# User-defined classes -----------------------------------------------------------------------------------------


def _named_tuple(kind: str, fields: list[str], items: list[Any]) -> Any:
    if not all(type(field) is str for field in fields) or len(fields) != len(items):
        raise ValueError("there must be a field name for each item")
    found = trust.allowed_by_name(_text(kind))
    if found is None:
        found = tuple_class(kind, tuple(fields))
    elif not (isinstance(found, type) and issubclass(found, tuple)):
        raise TypeError(f"{kind} is not a named tuple")
    return found(*items)


def _enum(kind: str, value: Any) -> Any:
    found = trust.allowed_by_name(_text(kind))
    if found is None:
        return value
    if not (isinstance(found, type) and issubclass(found, enum.Enum)):
        raise TypeError(f"{kind} is not an enumeration")
    return found(value)


def _packed_sequence(items: list[Any]) -> Any:
    from ..utils.rnn import PackedSequence

    if len(items) != 4 or not all(item is None or isinstance(item, core.Tensor) for item in items):
        raise ValueError("needs four tensors")
    return PackedSequence(*items)


def _sparse(
    layout: str,
    size: list[int],
    coalesced: bool,
    requires_grad: bool,
    indices: Any,
    columns: Any,
    values: Any,
) -> Any:
    kind = LAYOUTS[_text(layout)]
    parts = (
        (indices, values, size, coalesced is True) if columns is None else (indices, columns, values, size)
    )
    return rebuild_sparse(kind, parts).requires_grad_(requires_grad is True)


# Factories of defaultdicts ------------------------------------------------------------------------------------

_FACTORIES: dict[str, Callable[[], Any]] = {
    kind.__name__: kind for kind in (dict, list, set, tuple, int, float, bool, str, OrderedDict)
}


def name_of_factory(factory: Any, path: str) -> str | None:
    """Return the name of the factory of a defaultdict.

    Raises:
        TypeError: the factory is not a supported built-in type.
    """
    for name, one in _FACTORIES.items():
        if one is factory:
            return name
    if factory is None:
        return None
    raise TypeError(
        f"save: {path} is a defaultdict whose factory {factory!r} cannot be saved\n"
        "hint: save dict(value), or use one of " + ", ".join(_FACTORIES)
    )


def factory_of(name: Any) -> Any:
    """Return the factory with this name: the inverse of :func:`name_of_factory`."""
    return None if name is None else _FACTORIES[_text(name)]


_ENCODERS: dict[Any, Callable[[Any], tuple[str, dict[str, Any]] | None]] = {
    core.dtype: lambda v: ("dtype", {"value": str(v).rpartition(".")[2]}),
    OtherDtype: lambda v: ("dtype", {"value": str(v).rpartition(".")[2]}),
    core.device: lambda v: ("device", {"value": str(v)}),
    core.layout: lambda v: ("layout", {"value": str(v)}),
    type(core.sparse_coo): lambda v: ("layout", {"value": str(v)}),
    core.memory_format: lambda v: ("memory_format", {"value": str(v)}),
    bytes: lambda v: ("bytes", {"value": base64.b85encode(v).decode()}),
    bytearray: lambda v: ("bytearray", {"value": base64.b85encode(bytes(v)).decode()}),
    complex: lambda v: ("complex", {"real": v.real, "imag": v.imag}),
    range: lambda v: ("range", {"start": v.start, "stop": v.stop, "step": v.step}),
    slice: lambda v: ("slice", {"start": v.start, "stop": v.stop, "step": v.step}),
    deque: lambda v: ("deque", {"items": list(v), "maxlen": v.maxlen}),
    Namespace: lambda v: ("Namespace", {"items": dict(vars(v))}),
    datetime.datetime: _encode_time,
    datetime.time: _encode_time,
    datetime.date: lambda v: ("date", {"value": v.isoformat()}),
    datetime.timedelta: lambda v: (
        "timedelta",
        {"days": v.days, "seconds": v.seconds, "microseconds": v.microseconds},
    ),
    datetime.timezone: lambda v: (
        "timezone",
        dict(zip(("offset", "name"), v.__getinitargs__(), strict=False)),
    ),
}

_DECODERS: dict[str, Callable[..., Any]] = {
    "int": _int,
    "float": _float,
    "dtype": _dtype,
    "device": lambda value: core.device(_text(value)),
    "layout": lambda value: LAYOUTS[_text(value)],
    "memory_format": lambda value: MEMORY_FORMATS[_text(value)],
    "bytes": _bytes,
    "bytearray": lambda value: bytearray(_bytes(value)),
    "complex": lambda real, imag: complex(float(real), float(imag)),
    "range": lambda start, stop, step: range(start, stop, step),
    "slice": lambda start, stop, step: slice(start, stop, step),
    "deque": _deque,
    "Namespace": _namespace,
    "datetime": _date_time,
    "time": _time,
    "date": lambda value: datetime.date.fromisoformat(_text(value)),
    "timedelta": _duration,
    "timezone": _zone,
    "path": _path,
    "namedtuple": _named_tuple,
    "enum": _enum,
    "PackedSequence": _packed_sequence,
    "sparse": _sparse,
}
