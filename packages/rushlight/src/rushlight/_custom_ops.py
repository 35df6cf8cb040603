"""Deprecated alias of `rushlight.library`."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["get_ctx"]


def get_ctx() -> NoReturn:
    """Raise NotImplementedError, since programs are not traced."""
    raise NotImplementedError("get_ctx(): tracing of programs is not supported")
