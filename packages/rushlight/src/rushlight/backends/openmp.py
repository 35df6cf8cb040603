"""OpenMP, whose threads compute."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Return whether kernels run on several threads through it: yes."""
    return True
