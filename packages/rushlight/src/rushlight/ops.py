"""Operators of one's own by name: `ops.namespace.name`, as `library.custom_op` made them."""

from __future__ import annotations

from rushlight_autograd.library import CustomOpDef as _CustomOpDef
from rushlight_autograd.library import get_op as _get_op


class _Namespace:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _CustomOpDef:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return _get_op(f"{self._name}::{name}")
        except RuntimeError as error:
            raise AttributeError(str(error)) from None


def __getattr__(name: str) -> _Namespace:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Namespace(name)
