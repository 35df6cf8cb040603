"""Information about Apple's GPUs, which are not supported."""

from __future__ import annotations

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built() -> bool:
    """Return False: Apple's GPUs are not supported.

    Example:
        >>> torch.backends.mps.is_built()
        False
    """
    return False


def is_available() -> bool:
    """Return False: Apple's GPUs are not supported.

    Example:
        >>> torch.backends.mps.is_available()
        False
    """
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Return False: macOS is not supported.

    Example:
        >>> torch.backends.mps.is_macos_or_newer(13, 0)
        False
    """
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Return False: macOS is not supported.

    Example:
        >>> torch.backends.mps.is_macos13_or_newer()
        False
    """
    return False
