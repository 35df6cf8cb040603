"""Queries about OpenMP."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Return True: kernels use the threads of OpenMP.

    Example:
        >>> torch.backends.openmp.is_available()
        True
    """
    return True
