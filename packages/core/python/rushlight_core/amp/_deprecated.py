"""Deprecated functions of autocast for a single type of device."""

from __future__ import annotations

from typing import Any

from ._autocast import _state, get_autocast_dtype, is_autocast_enabled


def is_autocast_cpu_enabled() -> bool:
    """Return `is_autocast_enabled("cpu")`.

    Example:
        >>> torch.is_autocast_cpu_enabled()
        False
    """
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> Any:
    """Return `get_autocast_dtype("cpu")`.

    Example:
        >>> torch.get_autocast_cpu_dtype()
        torch.bfloat16
    """
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Any:
    """Return `get_autocast_dtype("cuda")`.

    Example:
        >>> torch.get_autocast_gpu_dtype()
        torch.float16
    """
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """Return whether autocast caches converted weights.

    Example:
        >>> torch.is_autocast_cache_enabled()
        True
    """
    return _state.cached


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether autocast caches converted weights in blocks that do not set `cache_enabled`.

    Example:
        >>> torch.set_autocast_cache_enabled(True)
    """
    _state.cached = enabled


def clear_autocast_cache() -> None:
    """Release the converted weights.

    Example:
        >>> torch.clear_autocast_cache()
    """
    _state.weights.clear()
