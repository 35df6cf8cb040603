"""Decorators for functions that export operators. The decorators have no effect; some libraries apply them at import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["parse_args"]

F = TypeVar("F", bound=Callable[..., Any])


def parse_args(*arg_descriptors: str) -> Callable[[F], F]:
    """Return a decorator that returns its function unchanged; some libraries apply it at import.

    Example:
        >>> @parse_args("v", "i")
        ... def symbolic(g, x, dim): ...
    """
    return lambda function: function
