"""Functions of numbers that PyTorch has for numbers that a compiler does not know yet. Here all are known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn

from ._C import overridable


class SymInt:
    """A size that a compiler does not know yet, for `isinstance`: there is none."""

    def __new__(cls, *args: Any) -> NoReturn:
        raise NotImplementedError(f"{cls.__name__}(): every number is known: there is no compiler")


class SymFloat(SymInt):
    """A number that a compiler does not know yet: there is none."""


class SymBool(SymInt):
    """A truth that a compiler does not know yet: there is none."""


def sym_float(a: Any) -> float:
    """`a` as a float."""
    return float(a)


def sym_int(a: Any) -> int:
    """`a` as an int, without its fraction."""
    return int(a)


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger number; a float if one of them is."""
    return _joint(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller number; a float if one of them is."""
    return _joint(min(a, b), a, b)


def _joint(result: Any, a: Any, b: Any) -> Any:
    return float(result) if isinstance(a, float) or isinstance(b, float) else result


def sym_not(a: bool) -> bool:
    """`not a`."""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`.

    Raises:
        TypeError: `b` is no bool, or the others are of different types.
    """
    if not isinstance(b, bool) or type(t) is not type(f):
        raise TypeError(
            f"sym_ite(b, t, f): needs a bool and two numbers of one type, got {type(b).__name__}, "
            f"{type(t).__name__} and {type(f).__name__}"
        )
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """Return the sum of several numbers, given one by one or in a list."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args)


def sym_sqrt(a: Any) -> float:
    """Return the square root."""
    return math.sqrt(a)


@overridable
def _assert(condition: Any, message: str) -> None:
    """`assert condition, message`; for programs that are traced elsewhere."""
    assert condition, message


def _check(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError with message() where `cond` is false."""
    if not cond:
        raise RuntimeError(message() if callable(message) else message or "a check failed")


def _assert_async(condition: Any, message: str = "") -> None:
    """Raise RuntimeError where a tensor of one truth is false. The host waits for it."""
    if not bool(condition):
        raise RuntimeError(message or "an assertion of a tensor's truth failed")
