"""Functions that a pickle calls to make containers, bytes, numbers, namespaces, paths, dates and times."""

from __future__ import annotations

import datetime
import pathlib
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable

from .._typing import Any
from . import trust
from .errors import FormatError
from .keys import Keys


def ordered_dict(keys: Keys, items: Any = ()) -> Any:
    return OrderedDict(_pairs(keys, items))


def counter(keys: Keys, items: Any = ()) -> Any:
    found = _pairs(keys, items)
    return Counter(found if isinstance(found, dict) else dict(found))


def _pairs(keys: Keys, items: Any) -> Any:
    if type(items) is dict:
        keys.check(items)
        return items
    if not isinstance(items, (list, tuple)) or not all(
        isinstance(p, (list, tuple)) and len(p) == 2 for p in items
    ):
        raise FormatError(
            f"a pickle makes a dictionary from a {type(items).__name__}, needs a list or tuple of pairs"
        )
    keys.check(key for key, _ in items)
    return items


_FACTORIES = (None, dict, list, set, tuple, int, float, bool, str, OrderedDict)


def default_dict(factory: Any = None) -> Any:
    if not any(factory is one for one in _FACTORIES) and not trust.is_allowed(factory):
        raise FormatError(
            f"a pickle makes a defaultdict with the factory {factory!r:.80}, which is not allowed"
        )
    return defaultdict(factory)


def plain_set(keys: Keys, items: Any = ()) -> Any:
    return set(_checked(keys, items))


def plain_frozenset(keys: Keys, items: Any = ()) -> Any:
    return frozenset(_checked(keys, items))


def _checked(keys: Keys, items: Any) -> Any:
    if not isinstance(items, (list, tuple)):
        raise FormatError(f"a pickle makes a set from a {type(items).__name__}, needs a list or tuple")
    keys.check(items)
    return items


def plain_list(items: Any = ()) -> Any:
    if not isinstance(items, (list, tuple)):
        raise FormatError(
            f"a pickle makes a list or deque from a {type(items).__name__}, needs a list or tuple"
        )
    return list(items)


def plain_deque(items: Any = (), maxlen: Any = None) -> Any:
    return deque(plain_list(items), maxlen)


def encode(text: Any, encoding: Any = "latin1") -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise FormatError("a pickle makes bytes from arguments other than a string and the encoding latin-1")
    return text.encode("latin-1")


def plain_bytes(data: Any = b"") -> bytes:
    if type(data) is not bytes:
        raise FormatError(f"a pickle makes bytes from a {type(data).__name__}, needs bytes or a string")
    return data


def plain_bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    return bytearray(encode(data, encoding) if type(data) is str else plain_bytes(data))


def plain_complex(real: Any = 0.0, imag: Any = 0.0) -> complex:
    if type(real) is not float or type(imag) is not float:
        raise FormatError("a pickle makes a complex number from arguments that are not floats")
    return complex(real, imag)


def plain_slice(*arguments: Any) -> slice:
    if not all(v is None or type(v) is int for v in arguments):
        raise FormatError("a pickle makes a slice from arguments that are neither ints nor None")
    return slice(*arguments)


def plain_range(*arguments: Any) -> range:
    if not all(type(v) is int for v in arguments):
        raise FormatError("a pickle makes a range from arguments that are not ints")
    return range(*arguments)


def namespace(*arguments: Any) -> Namespace:
    if arguments:
        raise FormatError(f"a pickle makes a Namespace from {len(arguments)} arguments, needs none")
    return Namespace()


def _path_of(kind: type) -> Callable[..., Any]:
    def build(*parts: Any) -> Any:
        if not all(type(part) is str for part in parts):
            raise FormatError("a pickle makes a path from parts that are not strings")
        return kind(*parts)

    return build


path: Callable[..., Any] = _path_of(pathlib.Path)
windows_path: Callable[..., Any] = _path_of(pathlib.PureWindowsPath)
pure_path: Callable[..., Any] = _path_of(pathlib.PurePosixPath)


def date_time(data: Any, zone: Any = None) -> datetime.datetime:
    data = _octets(data, 10)
    year, microsecond = (data[0] << 8) + data[1], int.from_bytes(data[7:], "big")
    made = datetime.datetime(year, data[2] & 127, data[3], data[4], data[5], data[6], microsecond)
    return made.replace(tzinfo=_zone(zone), fold=data[2] >> 7)


def date(data: Any) -> datetime.date:
    data = _octets(data, 4)
    return datetime.date((data[0] << 8) + data[1], data[2], data[3])


def time(data: Any, zone: Any = None) -> datetime.time:
    data = _octets(data, 6)
    made = datetime.time(data[0] & 127, data[1], data[2], int.from_bytes(data[3:], "big"))
    return made.replace(tzinfo=_zone(zone), fold=data[0] >> 7)


def duration(days: Any = 0, seconds: Any = 0, microseconds: Any = 0) -> datetime.timedelta:
    if not all(type(v) is int for v in (days, seconds, microseconds)):
        raise FormatError("a pickle makes a timedelta from arguments that are not ints")
    return datetime.timedelta(days, seconds, microseconds)


def time_zone(offset: Any, name: Any = None) -> datetime.timezone:
    return datetime.timezone(offset) if name is None else datetime.timezone(offset, name)


def _octets(data: Any, count: int) -> bytes:
    if type(data) is not bytes or len(data) != count:
        raise FormatError(f"a pickle makes a date or a time from data that are not {count} bytes")
    return data


def _zone(zone: Any) -> Any:
    if zone is not None and type(zone) is not datetime.timezone:
        raise FormatError(
            f"a pickle makes a time with a zone of type {type(zone).__name__}, needs a datetime.timezone"
        )
    return zone


# Builders that store values in a dictionary or a set. They check the keys with `Keys`.
OF_KEYS = (ordered_dict, counter, plain_set, plain_frozenset)
