"""Apple's GPUs: there is no backend for them."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]


def is_available() -> bool:
    """Return whether tensors can be made there: no."""
    return False


def device_count() -> int:
    """Return how many there are: none."""
    return 0


def empty_cache() -> None:
    """Do nothing: there is no unused memory to release."""


def manual_seed(seed: int) -> None:
    """Seeds the random numbers of the GPU: there is none, and nothing is done."""


def synchronize(device: Any = None) -> NoReturn:
    """Raise RuntimeError: there is nothing to wait for."""
    raise RuntimeError("mps.synchronize(): there is no such GPU\nhint: ask mps.is_available() before")
