"""Functions with which libraries query PyTorch's compiler, which rushlight does not have."""

from __future__ import annotations

from typing import Any

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: Any) -> bool:
    """Return False: programs are not compiled for any device.

    Example:
        >>> is_compile_supported("cpu")
        False
    """
    return False
