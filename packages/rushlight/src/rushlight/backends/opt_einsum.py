"""Settings of opt_einsum, which have no effect: `einsum` multiplies its operands from left to right."""

from __future__ import annotations

from typing import Any

enabled = False
strategy: Any = None

__all__ = ["enabled", "get_opt_einsum", "is_available", "strategy"]


def is_available() -> bool:
    """Return False: the package opt_einsum is not used to choose the order of contractions.

    Example:
        >>> torch.backends.opt_einsum.is_available()
        False
    """
    return False


def get_opt_einsum() -> Any:
    """Return None: the package opt_einsum is not used.

    Example:
        >>> torch.backends.opt_einsum.get_opt_einsum() is None
        True
    """
    return None
