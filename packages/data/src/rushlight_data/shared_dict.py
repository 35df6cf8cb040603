"""A read-only dict whose keys and values are stored in a few buffers, which forked processes share.

See Note [Copies on write] in `shared_list.py`. A key is found by binary search among the sorted hashes of all keys. Python's
own hashes of strings differ between processes, so CRC-32 is used instead.
"""

from __future__ import annotations

import bisect
import zlib
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from numbers import Integral
from typing import Any, ClassVar, NoReturn, TypeVar

from .shared_list import SharedList, _read_only

__all__ = ["SharedDict"]

K = TypeVar("K")
V = TypeVar("V")


class SharedDict(Mapping[K, V]):
    """A read-only mapping whose memory forked workers can read without copying it.

    Keys are strings, bytes or ints, and are stored in the order of `items`. Keys and values are stored as in
    a `SharedList`, and up to 8 bytes are added for each key. Reading a value takes up to ten microseconds and
    returns a new object that is equal to the original value, so changing this object does not change the
    mapping. Workers that are not forked receive a copy.

    Arguments:
        items: a mapping, or an iterable of pairs of a key and a value. If a key occurs several times, its last value is
            stored. Values must be picklable unless they are numbers, strings or bytes.

    Raises TypeError if a key is not a string, bytes or an int. Writing raises TypeError, and methods of dicts that would
    write raise AttributeError.

    Example:
        >>> ages = SharedDict({"ada": 36, "grace": 85})
        >>> len(ages), ages["grace"], "emmy" in ages
        (2, 85, False)
        >>> list(ages.items())
        [('ada', 36), ('grace', 85)]
    """

    draws_random: bool = False  # if a DataLoader uses the mapping as its dataset

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        import numpy as np

        items = items if isinstance(items, Mapping) else dict(items)
        self._keys: SharedList[K] = SharedList(items)
        self._values: SharedList[V] = SharedList(items.values())
        hashes = np.fromiter(map(_hash_of_key, items), np.uint32, len(items))
        positions = np.argsort(hashes, kind="stable")
        # The positions of the keys in the order of their hashes.
        self._positions = _read_only(positions.astype(np.min_scalar_type(len(items))))
        self._hashes = _read_only(hashes[positions])

    def __getitem__(self, key: K) -> V:
        position = self._find(key)
        if position is None:
            raise KeyError(key)
        return self._values[position]

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def _find(self, key: object) -> int | None:
        """Return the position of a key, or None."""
        hashes = memoryview(self._hashes)
        wanted = _hash(key)
        for i in range(bisect.bisect_left(hashes, wanted), len(hashes)):
            if hashes[i] != wanted:
                break
            position: int = self._positions.item(i)
            if self._keys[position] == key:
                return position
        return None

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def items(self) -> ItemsView[K, V]:
        """Return a view of the pairs of keys and values, in the order in which the mapping was created."""
        return _Items(self)

    def values(self) -> ValuesView[V]:
        """Return a view of the values, in the order of the keys."""
        return _Values(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        if len(self) != len(other):
            return False
        missing = object()
        for key, value in self.items():
            found = other.get(key, missing)
            if found is not value and found != value:
                return False
        return True

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{key!r}: {self[key]!r}" for key in self._keys[:4])
        return f"SharedDict({{{shown}{', ...' if len(self) > 4 else ''}}}) of {len(self)} items"

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "SharedDict: the values cannot be changed\nChange a dict and create a SharedDict of it."
        )

    def __delitem__(self, key: Any) -> NoReturn:
        raise TypeError("SharedDict: the keys cannot be removed\nCreate another SharedDict.")

    def __getattr__(self, name: str) -> NoReturn:
        hint = "\nIt is read-only: use dict(...) for a copy." if hasattr(dict, name) else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _read_only(self._positions)
        _read_only(self._hashes)


class _Items(ItemsView[K, V]):
    _mapping: SharedDict[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return zip(self._mapping._keys, self._mapping._values, strict=True)


class _Values(ValuesView[V]):
    _mapping: SharedDict[Any, V]

    def __iter__(self) -> Iterator[V]:
        return iter(self._mapping._values)


def _hash_of_key(key: object) -> int:
    if not isinstance(key, (str, bytes, Integral)):
        raise TypeError(
            f"SharedDict(items): keys must be strings, bytes or ints, got {key!r} of type {type(key).__name__}"
        )
    return _hash(key)


def _hash(key: object) -> int:
    """Return a 32-bit hash that is the same in all processes for strings, bytes and numbers."""
    if isinstance(key, str):
        return zlib.crc32(key.encode("utf-8", "surrogatepass"))
    if isinstance(key, bytes):
        return zlib.crc32(key)
    return hash(key) & 0xFFFFFFFF
