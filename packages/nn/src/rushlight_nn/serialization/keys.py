"""Checks of the keys of dictionaries and the elements of sets in a file.

A file could choose keys that all have one hash, so that filling a dictionary takes time proportional to the square of their
number. Python salts the hashes of strings and bytes, and those of small numbers differ. Data has few other keys, and their
number is limited here.
"""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core

from .._typing import Any
from .errors import FormatError

_SALTED = (str, bytes, bool, type(None), float, core.dtype, core.device)
_PARTS = 1000  # of a tuple: a hash walks all of it, and as often as a part of it occurs
_CHOSEN = 20_000  # keys whose hash a file can choose


class Keys:
    """Counts the keys of one file.

    Args:
        is_allowed: whether the user allowed a class, whose instances may be keys.
    """

    left: int

    def __init__(self, is_allowed: Any = None) -> None:
        self.is_allowed = is_allowed
        self.left = _CHOSEN

    def check(self, keys: Iterable[Any]) -> None:
        """Raise FormatError for keys that data does not have.

        Raises:
            FormatError: there is such a key, or there are too many of a kind.
        """
        for key in keys:
            if type(key) is str:
                continue
            pending, parts = [key], 0
            while pending:
                one = pending.pop()
                if isinstance(one, tuple):
                    pending.extend(one)
                    parts += len(one)
                    if parts > _PARTS:
                        raise FormatError(f"a key is a tuple of more than {_PARTS} items")
                elif type(one) is int:
                    parts += one.bit_length() > 64  # of shorter ones at most sixteen have the same hash
                elif type(one) is complex:
                    parts += 1
                elif type(one) not in _SALTED and not (self.is_allowed and self.is_allowed(type(one))):
                    raise FormatError(f"a key is of the unsupported type {type(one).__name__}")
            if isinstance(key, tuple) or parts:
                self.left -= 1
                if self.left < 0:
                    raise FormatError(f"more than {_CHOSEN} keys are tuples, long ints or complex numbers")
