"""Global settings, such as the precision of matrix products and the default device."""

from __future__ import annotations

from . import _C

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")

# The precisions that the user has chosen for float32 computations: "ieee", "tf32" or "none". "none" stands for the choice
# for "cuda", which is the choice for "all" if it is "none", too. Convolutions and recurrent layers are computed with "tf32"
# while nothing is chosen. "bf16" can be chosen only for "all", and does not concern CUDA.
_chosen = {"all": "none", "cuda": "none", "matmul": "none", "conv": "unset", "rnn": "unset"}
_SETTING_OF = {"matmul": "tf32_products", "conv": "tf32_convolutions", "rnn": "tf32_recurrent"}

_precision = "highest"
_debug_mode = 0
_warn_always = False
_interop_threads = 1


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision with which float32 matrices are multiplied.

    With "high" and "medium", CUDA may round factors to TF32, which has 10 bits of mantissa. On the CPU, products of float32
    matrices always have the precision of float32.

    Args:
        precision: "highest", "high" or "medium".

    Raises:
        RuntimeError: `precision` is not one of the values above.

    Example:
        >>> torch.set_float32_matmul_precision("high")
        >>> torch.get_float32_matmul_precision()
        'high'
        >>> torch.set_float32_matmul_precision("highest")
    """
    global _precision
    if precision not in _PRECISIONS:
        raise RuntimeError(
            f"set_float32_matmul_precision(precision): got {precision!r}, needs 'highest', 'high' or 'medium'"
        )
    set_fp32_precision("matmul", "ieee" if precision == "highest" else "tf32")
    _precision = precision


def get_float32_matmul_precision() -> str:
    """Return the precision that `set_float32_matmul_precision` has set; "highest" by default.

    Example:
        >>> torch.get_float32_matmul_precision()
        'highest'
    """
    return _precision


def fp32_precision(what: str) -> str:
    """Return the precision of float32 computations on CUDA: "ieee", "tf32", or "none" if nothing is chosen.

    Args:
        what: "matmul", "conv" or "rnn", or "cuda" or "all" for the value that these use if nothing is chosen for them.
    """
    if what == "all":
        return _chosen["all"]
    found = _chosen[what]
    if found in ("none", "unset"):
        above = fp32_precision("all" if what == "cuda" else "cuda")
        if above == "none" and found == "unset" and _chosen["all"] == "none":
            return "tf32"
        found = above if above != "bf16" else "none"
    return found


def set_fp32_precision(what: str, value: str) -> None:
    """Choose the precision of float32 computations: see `fp32_precision`.

    Raises:
        TypeError: `value` is not a str.
        RuntimeError: `value` is no precision, or CUDA does not support it.
    """
    if not isinstance(value, str):
        raise TypeError(f"fp32_precision: must be a str, not {type(value).__name__}")
    if value not in ("ieee", "tf32", "none", "bf16"):
        raise RuntimeError(f"fp32_precision: must be 'ieee', 'tf32', 'bf16' or 'none', got {value!r}")
    if value == "bf16" and what != "all":
        raise RuntimeError("fp32_precision: CUDA does not support 'bf16', needs 'ieee', 'tf32' or 'none'")
    _chosen[what] = value
    _apply_precisions()


def permit_tf32_in_cudnn(value: bool) -> None:
    """Set whether convolutions and recurrent layers may use TF32, as `backends.cudnn.allow_tf32` does."""
    for what in ("conv", "rnn"):
        _chosen[what] = "unset" if value else "none"
        if value and fp32_precision(what) != "tf32":
            _chosen[what] = "tf32"
    _apply_precisions()


def _apply_precisions() -> None:
    global _precision
    for each, setting in _SETTING_OF.items():
        _C._set_setting(setting, fp32_precision(each) == "tf32")
    if (_precision != "highest") != (fp32_precision("matmul") == "tf32"):
        _precision = "high" if _precision == "highest" else "highest"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Set whether an operator raises an error if its results for the same input may differ from run to run.

    On the CPU all operators are deterministic for a given number of threads, so the setting has no effect there.

    Args:
        mode: whether only deterministic operators may run.
        warn_only: whether to warn instead of raising an error.

    Example:
        >>> torch.use_deterministic_algorithms(True)
        >>> torch.are_deterministic_algorithms_enabled()
        True
        >>> torch.use_deterministic_algorithms(False)
    """
    _set_debug_mode(0 if not mode else 1 if warn_only else 2)


def _set_debug_mode(mode: int) -> None:
    global _debug_mode
    _debug_mode = mode
    _C._set_setting("deterministic_algorithms", mode != 0)


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` is on.

    Example:
        >>> torch.are_deterministic_algorithms_enabled()
        False
    """
    return _debug_mode != 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` is on with `warn_only`.

    Example:
        >>> torch.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return _debug_mode == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the mode of `use_deterministic_algorithms`, as a number or a name.

    Args:
        debug_mode: 0 or "default", 1 or "warn", 2 or "error".

    Raises:
        RuntimeError: `debug_mode` is not one of the values above.
        TypeError: the argument is neither an int nor a str.

    Example:
        >>> torch.set_deterministic_debug_mode("warn")
        >>> torch.get_deterministic_debug_mode()
        1
        >>> torch.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(
            f"set_deterministic_debug_mode(debug_mode): must be an int or a str, not {type(debug_mode).__name__}"
        )
    known = _DEBUG_MODES if isinstance(debug_mode, str) else range(3)
    if debug_mode not in known:
        raise RuntimeError(
            f"set_deterministic_debug_mode(debug_mode): got {debug_mode!r}, needs one of {', '.join(map(repr, known))}"
        )
    _set_debug_mode(_DEBUG_MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode)


def get_deterministic_debug_mode() -> int:
    """Return the current setting as the number that `set_deterministic_debug_mode` accepts.

    Example:
        >>> torch.get_deterministic_debug_mode()
        0
    """
    return _debug_mode


def set_warn_always(b: bool, /) -> None:
    """Set the value that `is_warn_always_enabled` returns. The setting has no other effect.

    Python's warning filters select the warnings that are shown; `warnings.simplefilter("always")` shows every warning.

    Args:
        b: the value.

    Raises:
        TypeError: the argument is not a bool.

    Example:
        >>> torch.set_warn_always(False)
    """
    global _warn_always
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always(b): must be a bool, not {type(b).__name__}")
    _warn_always = b


def is_warn_always_enabled() -> bool:
    """Return the value that `set_warn_always` has set; False by default.

    Example:
        >>> torch.is_warn_always_enabled()
        False
    """
    return _warn_always


def set_num_interop_threads(n: int, /) -> None:
    """Set the value that `get_num_interop_threads` returns.

    The value has no other effect, because operators run sequentially.

    Args:
        n: the value, a positive number.

    Raises:
        TypeError: the number is not an int.
        RuntimeError: the number is not positive.

    Example:
        >>> torch.set_num_interop_threads(1)
    """
    global _interop_threads
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"set_num_interop_threads(n): must be an int, not {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"set_num_interop_threads(n): got {n}, needs a positive number")
    _interop_threads = n


def init_num_threads() -> None:
    """Do nothing, because threads are started when they are first needed.

    Example:
        >>> torch.init_num_threads()
    """


def get_num_interop_threads() -> int:
    """Return the number that `set_num_interop_threads` has set; 1 by default.

    Example:
        >>> torch.get_num_interop_threads()
        1
    """
    return _interop_threads


def set_flush_denormal(mode: bool, /) -> bool:
    """Return False: rushlight never replaces subnormal numbers by zero.

    Args:
        mode: ignored.

    Example:
        >>> torch.set_flush_denormal(True)
        False
    """
    return False


def get_default_device() -> Any:
    """Return the device on which this thread creates tensors if no device is given, initially the CPU.

    The result of an accelerator has an index.

    Example:
        >>> torch.get_default_device()
        device(type='cpu')
    """
    device = _C._default_device() or _C.device("cpu")
    if device.index is None and device.type not in ("cpu", "meta"):
        return _C._current_device(device)
    return device


def set_default_device(device: Any) -> None:
    """Set the device on which this thread creates tensors if no device is given.

    `with torch.device("meta"):` sets the device for a block. Functions such as `zeros_like` create tensors on the device of
    their argument; `from_numpy` and `frombuffer` return tensors on the CPU, because they share the host's memory.

    Args:
        device: the device; None selects the CPU.

    Raises:
        TypeError: the argument is neither a device nor the name of a device.

    Example:
        >>> torch.set_default_device("meta")
        >>> torch.ones(2).device
        device(type='meta')
        >>> torch.set_default_device(None)
    """
    _C._set_default_device(device)


def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype by the old name of a tensor type. Deprecated: use `set_default_dtype`.

    Args:
        t: a name such as "torch.DoubleTensor".

    Raises:
        TypeError: `t` is not the name of a floating-point type on the CPU.

    Example:
        >>> torch.set_default_tensor_type("torch.DoubleTensor")
        >>> torch.ones(1).dtype
        torch.float64
        >>> torch.set_default_tensor_type("torch.FloatTensor")
    """
    from ._tensor_types import dtype_of_type

    dtype = dtype_of_type(t)
    if dtype is None or not dtype.is_floating_point:
        raise TypeError(
            f"set_default_tensor_type(t): got {t!r}, needs a floating-point type such as 'torch.DoubleTensor'"
        )
    _C.set_default_dtype(dtype)
