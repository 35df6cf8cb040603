"""Check the keys of dictionaries and the elements of sets in a file.

A file could contain keys that all have the same hash. The time to fill a dictionary would then be quadratic
in the number of keys. Python salts the hashes of strings and bytes, and at most sixteen 64-bit ints or floats
share a hash. For all other types of keys, the keys with equal hashes are counted. Computing the hash of a
tuple reads all of its parts each time, so these reads are counted, too.
"""

from __future__ import annotations

import datetime
import math
import pathlib
import sys
from collections.abc import Iterable

import rushlight_core as core
from rushlight_core._other_dtypes import OtherDtype

from .._typing import Any
from .errors import FormatError

_KNOWN = (str, bytes, bool, type(None), float, core.dtype, core.device, OtherDtype)
_COUNTED = (
    complex,
    range,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    pathlib.PurePath,
)
_SAME = 256  # largest number of keys of one container with the same hash
_DEPTH = 100  # largest nesting depth of tuples in a key, whose hash is computed recursively


class Keys:
    """A checker of the keys in one file, which limits how many keys of a container may have the same hash.

    Args:
        is_allowed: a function that returns whether the user allowed a class; instances of allowed classes may be keys.
        size: the size of the file in bytes, which limits the number of values that are read to compute the
            hashes of keys. By default, the number of values is not limited, which is safe only if a file
            cannot refer to the same key several times.
    """

    left: float

    def __init__(self, is_allowed: Any = None, size: float = math.inf) -> None:
        self.is_allowed = is_allowed
        self.left = 100_000 + 10 * size  # number of parts of keys that may still be read
        # A dictionary from the id of a container to the container and the number of its keys with each hash. The
        # container is stored so that no other object gets its id.
        self.counted: dict[int, tuple[Any, dict[int, int]]] = {}

    def check(self, keys: Iterable[Any], target: Any = None) -> int:
        """Check the keys of a dictionary or the elements of a set.

        Return the number of keys whose hash the author of the file can choose. Only these keys are checked for equal hashes.

        Args:
            keys: the keys of the dictionary, or the elements of the set.
            target: the dictionary or set, if its keys are checked in several calls; the counts of all calls are added.

        Raises:
            FormatError: a key has an unsupported type, or too many keys have the same hash.
        """
        counts: dict[int, int] | None = None
        found = 0
        for key in keys:
            if type(key) is str or (type(key) is int and key.bit_length() <= 64) or not self._is_chosen(key):
                continue
            if counts is None:
                counts = {} if target is None else self.counted.setdefault(id(target), (target, {}))[1]
            found += 1
            code = hash(key)
            counts[code] = counts.get(code, 0) + 1
            if counts[code] > _SAME:
                raise FormatError(
                    f"more than {_SAME} keys of one container have the same hash: the file was made to be slow to load"
                )
        return found

    def _is_chosen(self, key: Any) -> bool:
        """Return whether the author of a file can choose the hash of `key`."""
        pending, chosen = [(key, 0)], isinstance(key, (tuple, frozenset))
        while pending:
            one, depth = pending.pop()
            self.left -= 1
            if isinstance(one, (tuple, frozenset)):
                if depth == _DEPTH:
                    raise FormatError(f"a key is nested more than {_DEPTH} levels deep")
                self.left -= len(one)
                pending.extend((part, depth + 1) for part in one)
            elif type(one) is int:
                self.left -= one.bit_length() >> 6
                chosen = chosen or one.bit_length() > 64
            elif isinstance(one, _COUNTED) or _is_number(one):
                chosen = True
            elif type(one) in _KNOWN or isinstance(one, core.Tensor):  # a tensor is hashed by identity
                pass
            elif not (self.is_allowed and self.is_allowed(type(one))):
                raise FormatError(f"a key in the file has the unsupported type {type(one).__name__}")
            if self.left < 0:
                raise FormatError(
                    "hashing its keys reads too many values: the file was made to be slow to load"
                )
        return chosen


def _is_number(value: Any) -> bool:
    """Return whether `value` is a NumPy scalar."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)
