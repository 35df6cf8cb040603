"""Deprecated alias of `rushlight.library`."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["get_ctx"]


def get_ctx() -> NoReturn:
    """Raise NotImplementedError: abstract implementations of operators have no context.

    Example:
        >>> get_ctx()
        Traceback (most recent call last):
            ...
        NotImplementedError: get_ctx(): abstract implementations of operators are not supported
    """
    raise NotImplementedError("get_ctx(): abstract implementations of operators are not supported")
