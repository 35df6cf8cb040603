"""Operators of one's own by an older door: use `rushlight.library`."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["get_ctx"]


def get_ctx() -> NoReturn:
    """Raises NotImplementedError: there is no tracer that would ask for sizes that depend on values."""
    raise NotImplementedError("get_ctx(): there is no tracer of programs")
