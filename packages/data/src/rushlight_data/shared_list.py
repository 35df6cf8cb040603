"""A read-only list whose items are kept in a few buffers, which forked processes share.

Note [Copies on write]
A Python object has a reference count, which changes whenever the object is used. After a fork, the pages of a
list of millions of objects are therefore copied one by one in each worker, although no value changes. The
items of a `SharedList` are bytes in a buffer: reading an item creates a new object and does not write to the
buffer.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar, overload

__all__ = ["SharedList"]

T = TypeVar("T")


class SharedList(Sequence[T]):
    """A read-only sequence whose memory is not copied when forked workers read it.

    If all items are floats, or all are ints that fit into 64 bits, each item takes 8 bytes. Other items are
    stored as UTF-8 (if all are strings), unchanged (if all are bytes) or pickled, and each of them takes 8
    bytes more than its data. Each read of an item returns a new object, so changing this object does not
    change the list. Slices share the memory of the list. Workers that are not forked receive a copy.

    Arguments:
        items: the items, which must be picklable unless they are numbers, strings or bytes.

    Setting or deleting an item raises TypeError. List methods that would change the list, such as `append`,
    raise AttributeError.

    Example:
        >>> names = SharedList(["ada", "grace", "emmy"])
        >>> len(names), names[-1], names[:2] == ["ada", "grace"]
        (3, 'emmy', True)
    """

    draws_random: bool = False  # if a DataLoader uses the list as its dataset

    def __init__(self, items: Iterable[T]) -> None:
        items = items if isinstance(items, (list, tuple)) else list(items)
        self._kind, self._data, self._ends = _encode(items)
        self._range = range(len(items))

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> SharedList[T]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = type(self).__new__(type(self))
            part._kind, part._data, part._ends = self._kind, self._data, self._ends
            part._range = self._range[index]
            return part
        try:
            position = self._range[index]
        except IndexError:
            raise IndexError(f"SharedList: index {index} is out of range for {len(self)} items") from None
        return self._item(position)

    def __iter__(self) -> Iterator[T]:
        return map(self._item, self._range)

    def _item(self, position: int) -> Any:
        if self._ends is None:
            return self._data.item(position)
        data = self._data[self._ends.item(position) : self._ends.item(position + 1)].tobytes()
        if self._kind == "str":
            return data.decode("utf-8", "surrogatepass")
        return data if self._kind == "bytes" else pickle.loads(data)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (SharedList, list)):
            return NotImplemented
        return len(self) == len(other) and all(a is b or a == b for a, b in zip(self, other, strict=True))

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:4]))
        return f"SharedList([{shown}{', ...' if len(self) > 4 else ''}]) of {len(self)} items"

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "SharedList: the items cannot be changed\nChange a list and create a SharedList of it."
        )

    def __delitem__(self, index: Any) -> NoReturn:
        raise TypeError(
            "SharedList: the items cannot be removed\nUse a Subset, or create another SharedList."
        )

    def __getattr__(self, name: str) -> NoReturn:
        hint = "\nIt is read-only: use list(...) for a copy." if hasattr(list, name) else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def __getstate__(self) -> dict[str, Any]:
        whole = len(self._range) == (len(self._data) if self._ends is None else len(self._ends) - 1)
        if whole:
            return dict(self.__dict__)
        # A slice is pickled without the items that it leaves out.
        kind, data, ends = _encode(list(self))
        return {**self.__dict__, "_kind": kind, "_data": data, "_ends": ends, "_range": range(len(self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for array in (self._data, self._ends):
            if array is not None:
                array.flags.writeable = False


def _encode(items: Sequence[Any]) -> tuple[str, Any, Any]:
    """Return the kind of the items, their data, and, unless they are numbers, the offset of each item in the data."""
    import numpy as np

    encoded: Iterable[bytes]
    kinds = set(map(type, items))
    if kinds == {float}:
        return "float", _read_only(np.array(items, np.float64)), None
    if kinds == {int} and min(items) >= -(1 << 63) and max(items) < 1 << 63:
        return "int", _read_only(np.array(items, np.int64)), None
    if kinds == {str}:
        kind, encoded = "str", (item.encode("utf-8", "surrogatepass") for item in items)
    elif kinds == {bytes}:
        kind, encoded = "bytes", items
    else:
        kind, encoded = "object", (pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items)
    data, ends = bytearray(), np.zeros(len(items) + 1, np.int64)
    for i, item in enumerate(encoded):
        data += item
        ends[i + 1] = len(data)
    return kind, _read_only(np.array(data, np.uint8)), _read_only(ends)


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array
