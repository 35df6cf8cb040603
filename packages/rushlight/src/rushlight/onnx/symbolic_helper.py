"""Decorators for functions that export operators. They have no effect; libraries use them when they are imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["parse_args"]

F = TypeVar("F", bound=Callable[..., Any])


def parse_args(*arg_descriptors: str) -> Callable[[F], F]:
    """Return a decorator that returns its function unchanged. Libraries use it when they are imported.

    Example:
        >>> @parse_args("v", "i")
        ... def symbolic(g, x, dim): ...
    """
    return lambda function: function
