"""Wishes about how results are computed, for programs that state them. What they change is said at each."""

from __future__ import annotations

from . import _C

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")

_precision = "highest"
_debug_mode = 0
_warn_always = False
_interop_threads = 1


def set_float32_matmul_precision(precision: str) -> None:
    """How exactly float32 matrices have to be multiplied: "highest", "high" or "medium".

    It permits: with all but "highest" CUDA may round factors to TF32, which has 10 bits of mantissa. On the CPU products of
    float32 have float32's digits in any case.

    Raises:
        RuntimeError: there is no such precision.
    """
    global _precision
    if precision not in _PRECISIONS:
        raise RuntimeError(
            f"set_float32_matmul_precision(precision): got {precision!r}, needs 'highest', 'high' or 'medium'"
        )
    _precision = precision
    _C._permit_tf32(0, precision != "highest")


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
    """Return whether `use_deterministic_algorithms` is on."""
    return _debug_mode != 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether it is on with `warn_only`."""
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
    """Return the number that `set_deterministic_debug_mode` takes."""
    return _debug_mode


def set_warn_always(b: bool, /) -> None:
    """Whether a warning is given each time, not only the first time. Python's own filters decide that here.

    It is remembered for `is_warn_always_enabled`; `warnings.simplefilter("always")` is what shows every warning.
    """
    global _warn_always
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always(b): must be a bool, not {type(b).__name__}")
    _warn_always = b


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` has set; False at first."""
    return _warn_always


def set_num_interop_threads(n: int, /) -> None:
    """How many operators may run side by side. They run one after the other, each with `get_num_threads()` threads.

    It is remembered for `get_num_interop_threads`, and changes nothing.

    Raises:
        RuntimeError: the number is not positive.
    """
    global _interop_threads
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"set_num_interop_threads(n): must be an int, not {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"set_num_interop_threads(n): got {n}, needs a positive number")
    _interop_threads = n


def init_num_threads() -> None:
    """Nothing: a thread takes its share of the cores when it first computes in parallel."""


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` has set; 1 at first."""
    return _interop_threads


def set_flush_denormal(mode: bool, /) -> bool:
    """Return whether numbers too small for full precision become zero: returns False, they never do here."""
    return False


def get_default_device() -> Any:
    """Where this thread makes tensors when no device is named: on the CPU, unless somebody has said otherwise."""
    return _C._default_device() or _C.device("cpu")


def set_default_device(device: Any) -> None:
    """Where this thread makes tensors from now on when no device is named; None is the CPU again.

    `with torch.device("meta"):` says it for a block. What is made like another tensor (`zeros_like`) is made where
    that one is; `from_numpy` and `frombuffer` share the host's memory.

    Raises:
        TypeError: it is neither a device nor the name of one.
    """
    _C._set_default_device(device)


def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype by an old name of a type, such as "torch.DoubleTensor"; deprecated: `set_default_dtype`.

    Raises:
        TypeError: it is no type of floating-point numbers on the CPU.
    """
    from ._tensor_types import dtype_of_type

    dtype = dtype_of_type(t)
    if dtype is None or not dtype.is_floating_point:
        raise TypeError(
            f"set_default_tensor_type(t): got {t!r}, needs a floating-point type such as 'torch.DoubleTensor'"
        )
    _C.set_default_dtype(dtype)
