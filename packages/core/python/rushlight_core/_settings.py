"""Wishes about how results are computed, for programs that state them. What they change is said at each."""

from __future__ import annotations

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")

_precision = "highest"
_debug_mode = 0


def set_float32_matmul_precision(precision: str) -> None:
    """How exactly float32 matrices have to be multiplied: "highest", "high" or "medium".

    It permits; on the CPU products of float32 have float32's digits in any case.

    Raises:
        RuntimeError: there is no such precision.
    """
    global _precision
    if precision not in _PRECISIONS:
        raise RuntimeError(
            f"set_float32_matmul_precision(precision): got {precision!r}, needs 'highest', 'high' or 'medium'"
        )
    _precision = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` has set; "highest" at first."""
    return _precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Whether only operators may run that give the same result for the same input again.

    On the CPU all of them do, for a given number of threads, and this changes nothing: no operator has to raise or warn.
    """
    global _debug_mode
    _debug_mode = 0 if not mode else 1 if warn_only else 2


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` is on."""
    return _debug_mode != 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it is on with `warn_only`."""
    return _debug_mode == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same as a number or a word: 0 "default", 1 "warn", 2 "error".

    Raises:
        RuntimeError: it is none of these.
        TypeError: it is neither an int nor a str.
    """
    global _debug_mode
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(
            f"set_deterministic_debug_mode(debug_mode): must be an int or a str, not {type(debug_mode).__name__}"
        )
    known = _DEBUG_MODES if isinstance(debug_mode, str) else range(3)
    if debug_mode not in known:
        raise RuntimeError(
            f"set_deterministic_debug_mode(debug_mode): got {debug_mode!r}, needs one of {', '.join(map(repr, known))}"
        )
    _debug_mode = _DEBUG_MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode


def get_deterministic_debug_mode() -> int:
    """The number that `set_deterministic_debug_mode` takes."""
    return _debug_mode
