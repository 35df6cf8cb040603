"""Intel's GPUs: there is no backend for them."""

from __future__ import annotations

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """Whether tensors can be made there: no."""
    return False


def device_count() -> int:
    """How many there are: none."""
    return 0
