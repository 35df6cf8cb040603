"""Intel's GPUs: there is no backend for them."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all", "synchronize"]


def is_available() -> bool:
    """Return False: there is no backend for Intel GPUs.

    Example:
        >>> torch.xpu.is_available()
        False
    """
    return False


def device_count() -> int:
    """Return 0: there is no backend for Intel GPUs.

    Example:
        >>> torch.xpu.device_count()
        0
    """
    return 0


def empty_cache() -> None:
    """No-op: there is no unused memory to release.

    Example:
        >>> torch.xpu.empty_cache()
    """


def manual_seed(seed: int) -> None:
    """No-op: there is no Intel GPU whose random numbers could be seeded.

    Example:
        >>> torch.xpu.manual_seed(0)
    """


def synchronize(device: Any = None) -> NoReturn:
    """Raise RuntimeError: there is no Intel GPU to wait for.

    Example:
        >>> torch.xpu.synchronize()
        Traceback (most recent call last):
            ...
        RuntimeError: ...
    """
    raise RuntimeError(
        "xpu.synchronize(): no GPU of this type is available\nhint: check xpu.is_available() first"
    )


manual_seed_all = manual_seed
