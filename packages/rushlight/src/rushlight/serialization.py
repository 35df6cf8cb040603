"""`save` and `load`, by the module that PyTorch has them in.

What lists classes that a pickle may make is accepted and changes nothing: no pickle is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from rushlight_nn.serialization import load, save

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

DEFAULT_PROTOCOL = 2
MAP_LOCATION = Callable[..., Any] | str | dict[str, str] | None


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Accepted; nothing is done."""


def get_safe_globals() -> list[Any]:
    """The classes that a pickle may make: none."""
    return []


def clear_safe_globals() -> None:
    """Nothing."""


class safe_globals:  # noqa: N801
    """A block; nothing is done."""

    def __init__(self, safe_globals: Sequence[Any]) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass
