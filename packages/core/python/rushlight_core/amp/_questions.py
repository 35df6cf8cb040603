"""What is asked about autocast under names of before it was for every device."""

from __future__ import annotations

from typing import Any

from ._autocast import _state, get_autocast_dtype, is_autocast_enabled


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> Any:
    """`get_autocast_dtype("cpu")`."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Any:
    """`get_autocast_dtype("cuda")`."""
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """Whether a weight is converted once for all its uses."""
    return _state.cached


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Whether a weight is converted once for all its uses, in blocks that do not say it."""
    _state.cached = enabled


def clear_autocast_cache() -> None:
    """Forgets what was converted."""
    _state.weights.clear()
