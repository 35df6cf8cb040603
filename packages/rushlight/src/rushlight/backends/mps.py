"""Apple's GPUs: there is no backend for them."""

from __future__ import annotations

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built() -> bool:
    """Return whether there is a backend: no."""
    return False


def is_available() -> bool:
    """Return whether tensors can be made there: no."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Return whether this is a macOS of that version: no, this is Linux."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Return whether this is macOS 13: no, this is Linux."""
    return False
