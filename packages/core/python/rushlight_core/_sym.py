"""PyTorch's functions for symbolic numbers. In rushlight, their arguments are plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn

from ._C import overridable


class SymInt:
    """PyTorch's class of symbolic sizes, which programs pass to `isinstance`.

    In rushlight, the class has no instances.

    Raises:
        NotImplementedError: the class is called.

    Example:
        >>> isinstance(torch.ones(2).shape[0], torch.SymInt)
        False
    """

    def __new__(cls, *args: Any) -> NoReturn:
        raise NotImplementedError(
            f"{cls.__name__}(): symbolic numbers are not supported, since there is no compiler"
        )


class SymFloat(SymInt):
    """PyTorch's class of symbolic numbers, which programs pass to `isinstance`.

    In rushlight, the class has no instances.

    Example:
        >>> isinstance(1.0, torch.SymFloat)
        False
    """


class SymBool(SymInt):
    """PyTorch's class of symbolic bools, which programs pass to `isinstance`.

    In rushlight, the class has no instances.

    Example:
        >>> isinstance(True, torch.SymBool)
        False
    """


def sym_float(a: Any) -> float:
    """Return a number as a float.

    Example:
        >>> torch.sym_float(2)
        2.0
    """
    return float(a)


def sym_int(a: Any) -> int:
    """Return a number as an int, rounded toward zero.

    Example:
        >>> torch.sym_int(2.7)
        2
    """
    return int(a)


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger of two numbers, as a float if at least one of the two is a float.

    Example:
        >>> torch.sym_max(2, 3)
        3
    """
    return _joint(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, as a float if at least one of the two is a float.

    Example:
        >>> torch.sym_min(2, 3.0)
        2.0
    """
    return _joint(min(a, b), a, b)


def _joint(result: Any, a: Any, b: Any) -> Any:
    return float(result) if isinstance(a, float) or isinstance(b, float) else result


def sym_not(a: bool) -> bool:
    """Return `not a`.

    Example:
        >>> torch.sym_not(True)
        False
    """
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Return `t` if `b` is true, else `f`.

    Raises:
        TypeError: `b` is not a bool, or `t` and `f` are of different types.

    Example:
        >>> torch.sym_ite(True, 1, 2)
        1
    """
    if not isinstance(b, bool) or type(t) is not type(f):
        raise TypeError(
            f"sym_ite(b, t, f): needs a bool and two numbers of one type, got {type(b).__name__}, "
            f"{type(t).__name__} and {type(f).__name__}"
        )
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """Return the sum of several numbers, given one by one or in a list.

    Example:
        >>> torch.sym_sum([1, 2, 3])
        6
    """
    return sum(args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args)


def sym_sqrt(a: Any) -> float:
    """Return the square root.

    Example:
        >>> torch.sym_sqrt(9)
        3.0
    """
    return math.sqrt(a)


@overridable
def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with the text `message` if `condition` is false. `torch.fx` records calls of this function."""
    assert condition, message


def _check(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError with the text `message()` if `cond` is false."""
    if not cond:
        raise RuntimeError(message() if callable(message) else message or "a check failed")


def _assert_async(condition: Any, message: str = "") -> None:
    """Raise RuntimeError if the only element of a tensor is 0 or False. The host waits until the tensor is computed."""
    if not bool(condition):
        raise RuntimeError(message or "_assert_async(condition): must be true, got False")
