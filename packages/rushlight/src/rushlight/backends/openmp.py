"""Queries about OpenMP."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Return True: kernels are parallelised with OpenMP.

    Example:
        >>> torch.backends.openmp.is_available()
        True
    """
    return True
