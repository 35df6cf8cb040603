"""The order in which `einsum` multiplies: from left to right."""

from __future__ import annotations

from typing import Any

enabled = False
strategy: Any = None

__all__ = ["enabled", "get_opt_einsum", "is_available", "strategy"]


def is_available() -> bool:
    """Return whether the package opt_einsum chooses the order: no."""
    return False


def get_opt_einsum() -> Any:
    """The package: None, it is not used."""
    return None
