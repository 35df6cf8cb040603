"""The class of `torch.__version__`: a string that is compared as a version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import eq, ge, gt, le, lt, ne
from typing import Any

__all__ = ["TorchVersion"]

_FORM = re.compile(r"v?(\d+(?:\.\d+)*)[._-]?(a|alpha|b|beta|rc|c|dev|post)?(\d*)(.*)", re.IGNORECASE)
_STAGES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "": 0, "post": 1}


def _key(version: Any) -> tuple[tuple[int, ...], int, int, bool]:
    """Return the key by which versions are sorted.

    The key of "2.1.0rc3+cpu" is ((2, 1), -1, 3, True): the release without zeros at its end, the stage from `_STAGES`, the
    number after the stage, and whether there is a local part.
    """
    if isinstance(version, Iterable) and not isinstance(version, str):
        version = ".".join(map(str, version))
    found = _FORM.fullmatch(str(version))
    if found is None:
        raise ValueError(f"not a version: {version!r}")
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), _STAGES[(found[2] or "").lower()], int(found[3] or 0), "+" in found[4]


class TorchVersion(str):
    """A version string that can be compared with strings, with tuples, and with objects that `str` converts to a version.

    >>> TorchVersion("2.13.0+cpu") >= "2.2"
    True
    >>> TorchVersion("2.13.0") >= (2, 13)
    True

    Versions are compared by the rules of PEP 440. A string that is not a version is compared as a string.
    """

    def _compare(self, other: Any, operator: Callable[[Any, Any], bool]) -> bool:
        try:
            left, right = _key(str(self)), _key(other)
        except ValueError:
            return operator(str(self), other)
        if left == right and left[3]:  # both versions have local parts
            return operator(str(self), str(other))
        return operator(left, right)

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, lt)

    def __le__(self, other: Any) -> bool:
        return self._compare(other, le)

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, gt)

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, ge)

    def __eq__(self, other: object) -> bool:
        return self._compare(other, eq)

    def __ne__(self, other: object) -> bool:
        return self._compare(other, ne)

    def __hash__(self) -> int:
        return str.__hash__(self)
