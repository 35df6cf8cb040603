"""Deprecated alias of `rushlight.library`."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["get_ctx"]


def get_ctx() -> NoReturn:
    """Raise NotImplementedError: operators have no context of a tracer.

    Example:
        >>> get_ctx()
        Traceback (most recent call last):
            ...
        NotImplementedError: get_ctx(): tracing of programs is not supported
    """
    raise NotImplementedError("get_ctx(): tracing of programs is not supported")
