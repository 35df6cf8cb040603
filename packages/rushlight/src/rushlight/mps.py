"""Apple's GPUs: there is no backend for them."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]


def is_available() -> bool:
    """Return False: there is no backend for Apple GPUs.

    Example:
        >>> torch.mps.is_available()
        False
    """
    return False


def device_count() -> int:
    """Return 0: there is no backend for Apple GPUs.

    Example:
        >>> torch.mps.device_count()
        0
    """
    return 0


def empty_cache() -> None:
    """No-op: there is no unused memory to release.

    Example:
        >>> torch.mps.empty_cache()
    """


def manual_seed(seed: int) -> None:
    """No-op: there is no Apple GPU whose random numbers could be seeded.

    Example:
        >>> torch.mps.manual_seed(0)
    """


def synchronize(device: Any = None) -> NoReturn:
    """Raise RuntimeError: there is no Apple GPU to wait for.

    Example:
        >>> torch.mps.synchronize()
        Traceback (most recent call last):
            ...
        RuntimeError: ...
    """
    raise RuntimeError(
        "mps.synchronize(): no GPU of this type is available\nhint: check mps.is_available() first"
    )
