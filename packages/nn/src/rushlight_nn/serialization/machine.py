"""Read pickles without executing code: an interpreter of the instructions that occur in pickled data.

A pickle is a program for a small stack machine. The machine in this module executes the instructions that push values on the
stack and collect them in containers. Instructions that refer to names, call functions or set states use a table
(:mod:`names`), which contains only the classes, functions and constants that occur in pickled data. No module is imported,
and no attribute is looked up by a name from the file. Python's `pickletools` documents the instructions.
"""

from __future__ import annotations

import struct
import sys
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable

from .errors import Budget, FormatError
from .keys import Keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Table(Protocol):
        """A table of the functions that a pickle may call and of the objects to which it may add items."""

        keys: Keys

        def find(self, name: str) -> Any: ...
        def has(self, name: str) -> bool: ...
        def call(self, function: Any, arguments: tuple[Any, ...], new: bool) -> Any: ...
        def give_state(self, value: Any, state: Any) -> None: ...
        def persistent(self, key: Any) -> Any: ...
        def is_mapping(self, value: Any) -> bool: ...
        def is_sequence(self, value: Any) -> bool: ...


_MAPPINGS = (dict, OrderedDict, defaultdict, Counter)

# The memory in bytes of objects in CPython, including the memory that is needed while they grow: a slot in a list, a
# number, an empty string, a list with its first items, and an empty tuple, dictionary and set.
_SLOT, _NUMBER, _TEXT, _LIST, _TUPLE, _DICT, _SET = 9, 32, 64, 96, 56, 80, 232
_STORAGE = 600
_COUNTED = 110  # memory of the count for a key in :class:`Keys`
# Equal ints from 0 to below this number share one object. Otherwise small ints would have the largest ratio of memory to
# size in the file.
_SMALL = 1 << 16


def cost_of_items(kind: type, before: int, count: int) -> int:
    """Return the memory that `count` additional items take in a dictionary or set that already has `before` items."""
    if kind in (set, frozenset):
        first = 400 if before < 5 <= before + count else 0  # the first four are stored in the set object
        return first + 110 * max(before + count - max(before, 4), 0)
    first = 160 if before == 0 and count else 0  # the first table has room for five items
    links = 75 * count if kind is OrderedDict else 0
    return links + first + 90 * max(before + count - max(before, 5), 0)


class Machine:
    """An interpreter that reads the pickles in `data` one after the other.

    Args:
        data: the pickles.
        table: the names that the pickles may use.
        budget: the memory that may be used.
    """

    def __init__(self, data: bytes, table: Table, budget: Budget) -> None:
        self.data = data
        self.position: int = 0
        self.table = table
        self.budget = budget
        self.keys: Keys = table.keys
        self.small: list[int | None] = []

    def load(self) -> Any:
        """Return the value of the pickle at `position`, and advance `position` to the end of the pickle.

        Raises:
            FormatError: the pickle is damaged, or names a class or function that is not allowed.
        """
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        data, instructions = self.data, _INSTRUCTIONS
        while True:
            if self.position >= len(data):
                raise FormatError("the file is truncated: a pickle in it is not complete")
            code = data[self.position]
            self.position += 1
            if code == 0x2E:  # STOP
                result = self.pop()
                if self.stack or self.marks:
                    raise FormatError("a pickle ends with values left on its stack: the file is damaged")
                return result
            instruction = instructions.get(code)
            if instruction is None:
                raise FormatError(f"a pickle has the instruction {bytes([code])!r}, which is not allowed")
            instruction(self)

    # Operands and stack ---------------------------------------------------------------------------------------

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes of `data`, and advance `position`."""
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise FormatError("the file is truncated: a pickle in it is not complete")
        found = self.data[self.position : end]
        self.position = end
        return found

    def number(self, form: str, count: int) -> int:
        return struct.unpack(form, self.take(count))[0]

    def line(self) -> str:
        end = self.data.find(b"\n", self.position, self.position + 1000)
        if end < 0:
            raise FormatError("the name of a class or function in a pickle does not end: the file is damaged")
        found = self.data[self.position : end]
        self.position = end + 1
        return _text(found)

    def push(self, value: Any, cost: int = 0) -> None:
        self.budget.charge(cost + _SLOT)
        self.stack.append(value)

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise FormatError("a pickle takes more values from its stack than are there: the file is damaged")
        self.budget.left += _SLOT
        return self.stack.pop()

    def top(self) -> Any:
        value = self.pop()
        self.push(value)
        return value

    def pop_to_mark(self) -> list[Any]:
        if not self.marks:
            raise FormatError("a pickle ends a container that it did not begin: the file is damaged")
        begin = self.marks.pop()
        found = self.stack[begin:]
        del self.stack[begin:]
        self.budget.left += _SLOT * len(found) + _NUMBER + _SLOT
        return found

    def integer(self, value: int) -> None:
        """Push an int; equal small ints share one object."""
        if not 0 <= value < _SMALL:
            self.push(value, _NUMBER + (value.bit_length() >> 3))
            return
        if value < 256:  # CPython shares these objects itself
            self.push(value)
            return
        if not self.small:
            self.small = [None] * _SMALL
        found = self.small[value]
        if found is None:
            found = self.small[value] = value
        self.push(found)

    # Containers ------------------------------------------------------------------------------------------------

    def extend(self, items: list[Any]) -> None:
        target = self.top()
        self.budget.charge(_SLOT * len(items))
        if type(target) is list or self.table.is_sequence(target):
            target.extend(items)
        else:
            raise FormatError(f"a pickle appends items to a {type(target).__name__}, which is not a list")

    def add(self, items: list[Any]) -> None:
        target = self.top()
        if type(target) is not set:
            raise FormatError(f"a pickle adds items to a {type(target).__name__}, which is not a set")
        counted = self.keys.check(items, target)
        self.budget.charge(cost_of_items(set, len(target), len(items)) + _COUNTED * counted)
        target.update(items)

    def set_items(self, items: list[Any]) -> None:
        target = self.top()
        if type(target) not in _MAPPINGS and not self.table.is_mapping(target):
            raise FormatError(f"a pickle sets items of a {type(target).__name__}, which is not a dictionary")
        if len(items) % 2:
            raise FormatError("a pickle has a dictionary key without a value: the file is damaged")
        counted = self.keys.check(items[::2], target)
        self.budget.charge(cost_of_items(type(target), len(target), len(items) // 2) + _COUNTED * counted)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[key] = value

    # Memo, names and calls ----------------------------------------------------------------------------------------

    def remember(self, index: int) -> None:
        value = self.top()
        if index < len(self.memo):
            self.memo[index] = value
        elif index == len(self.memo):
            self.budget.charge(_SLOT)
            self.memo.append(value)
        else:
            raise FormatError("the objects in a pickle are not numbered one by one: the file is damaged")

    def recall(self, index: int) -> None:
        if index >= len(self.memo):
            raise FormatError("a pickle refers to an earlier object that does not exist: the file is damaged")
        self.push(self.memo[index])

    def call(self, new: bool) -> None:
        arguments = self.pop()
        function = self.pop()
        if type(arguments) is not tuple:
            raise FormatError("the arguments of a call in a pickle are not a tuple: the file is damaged")
        self.push(self.table.call(function, arguments, new))

    def build(self) -> None:
        state = self.pop()
        self.table.give_state(self.top(), state)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise FormatError("a string in a pickle is not valid UTF-8: the file is damaged") from None


def _string(form: str, size: int) -> Callable[[Machine], None]:
    def instruction(m: Machine) -> None:
        count = m.number(form, size)
        value = _text(m.take(count))
        # If one character needs four bytes, all characters of the string take four bytes each.
        m.push(value, 0 if count < 2 else _TEXT + count if value.isascii() else sys.getsizeof(value) + 8)

    return instruction


def _bytes(form: str, size: int) -> Callable[[Machine], None]:
    def instruction(m: Machine) -> None:
        count = m.number(form, size)
        m.push(m.take(count), _TEXT + count)

    return instruction


def _bytearray(m: Machine) -> None:
    data = m.take(m.number("<Q", 8))
    m.push(bytearray(data), _TEXT + len(data))


def _old_string(form: str, size: int) -> Callable[[Machine], None]:
    def instruction(m: Machine) -> None:  # strings of Python 2, which were bytes
        count = m.number(form, size)
        m.push(m.take(count).decode("latin-1"), _TEXT + 2 * count)

    return instruction


def _integer(form: str, size: int) -> Callable[[Machine], None]:
    return lambda m: m.integer(m.number(form, size))


def _long(form: str, size: int) -> Callable[[Machine], None]:
    def instruction(m: Machine) -> None:
        count = m.number(form, size)
        m.integer(int.from_bytes(m.take(count), "little", signed=True))

    return instruction


def _constant(value: Any) -> Callable[[Machine], None]:
    return lambda m: m.push(value)


def _empty(kind: Any, cost: int) -> Callable[[Machine], None]:
    return lambda m: m.push(kind(), cost)


def _tuple(count: int) -> Callable[[Machine], None]:
    def instruction(m: Machine) -> None:
        items = tuple(reversed([m.pop() for _ in range(count)]))
        m.push(items, _TUPLE + 8 * count)

    return instruction


def _marked_tuple(m: Machine) -> None:
    items = m.pop_to_mark()
    m.push(tuple(items), _TUPLE + 8 * len(items))


def _marked_list(m: Machine) -> None:
    items = m.pop_to_mark()
    m.push(items, _LIST + _SLOT * len(items))


def _marked_dict(m: Machine) -> None:
    items = m.pop_to_mark()
    m.push({}, _DICT)
    m.set_items(items)


def _frozenset(m: Machine) -> None:
    items = m.pop_to_mark()
    counted = m.keys.check(items)
    m.budget.charge(cost_of_items(frozenset, 0, len(items)) + _COUNTED * counted)
    m.push(frozenset(items), _SET)


def _mark(m: Machine) -> None:
    m.budget.charge(_NUMBER + _SLOT)
    m.marks.append(len(m.stack))


def _one_item(m: Machine) -> None:
    value = m.pop()
    key = m.pop()
    m.set_items([key, value])


def _name(m: Machine) -> None:
    module = m.line()
    m.push(m.table.find(f"{module}.{m.line()}"))


def _stacked_name(m: Machine) -> None:
    name, module = m.pop(), m.pop()
    if type(name) is not str or type(module) is not str:
        raise FormatError("the name of a class or function in a pickle is not a string: the file is damaged")
    m.push(m.table.find(f"{module}.{name}"))


def _protocol(m: Machine) -> None:
    version = m.number("<B", 1)
    if not 2 <= version <= 5:
        raise FormatError(f"a pickle has protocol {version}, needs 2 to 5")


_INSTRUCTIONS: dict[int, Callable[[Machine], None]] = {
    ord(code): instruction
    for code, instruction in {
        b"\x80": _protocol,
        b"\x95": lambda m: m.take(8) and None,  # FRAME is ignored, because it only helps readers of streams
        b"(": _mark,
        b"N": _constant(None),
        b"\x88": _constant(True),
        b"\x89": _constant(False),
        b"J": _integer("<i", 4),
        b"K": _integer("<B", 1),
        b"M": _integer("<H", 2),
        b"\x8a": _long("<B", 1),
        b"\x8b": _long("<i", 4),
        b"G": lambda m: m.push(m.number(">d", 8), _NUMBER),
        b"X": _string("<I", 4),
        b"\x8c": _string("<B", 1),
        b"\x8d": _string("<Q", 8),
        b"U": _old_string("<B", 1),
        b"T": _old_string("<i", 4),
        b"C": _bytes("<B", 1),
        b"B": _bytes("<I", 4),
        b"\x8e": _bytes("<Q", 8),
        b"\x96": _bytearray,
        b")": _constant(()),
        b"\x85": _tuple(1),
        b"\x86": _tuple(2),
        b"\x87": _tuple(3),
        b"t": _marked_tuple,
        b"]": _empty(list, _LIST),
        b"l": _marked_list,
        b"a": lambda m: m.extend([m.pop()]),
        b"e": lambda m: m.extend(m.pop_to_mark()),
        b"}": _empty(dict, _DICT),
        b"d": _marked_dict,
        b"s": _one_item,
        b"u": lambda m: m.set_items(m.pop_to_mark()),
        b"\x8f": _empty(set, _SET),
        b"\x90": lambda m: m.add(m.pop_to_mark()),
        b"\x91": _frozenset,
        b"q": lambda m: m.remember(m.number("<B", 1)),
        b"r": lambda m: m.remember(m.number("<I", 4)),
        b"\x94": lambda m: m.remember(len(m.memo)),
        b"h": lambda m: m.recall(m.number("<B", 1)),
        b"j": lambda m: m.recall(m.number("<I", 4)),
        b"c": _name,
        b"\x93": _stacked_name,
        b"R": lambda m: m.call(new=False),
        b"\x81": lambda m: m.call(new=True),
        b"b": Machine.build,
        b"Q": lambda m: m.push(m.table.persistent(m.pop()), _STORAGE),
    }.items()
}
