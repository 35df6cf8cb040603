"""Operators of one's own by name: `ops.namespace.name`, as `library.custom_op` made them."""

from __future__ import annotations

from typing import Any, NoReturn

import rushlight_core as _core
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


class _Overload:
    """An operator of PyTorch's by its inner name, `aten.add.Tensor`: calls the public one."""

    def __init__(self, name: str, overload: str) -> None:
        self.__name__ = f"{name}.{overload}"
        self._name = name

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._name}', overload={self.__name__.partition('.')[2]!r})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = getattr(_core, self._name, None) or getattr(_core.Tensor, self._name, None)
        if function is None:
            raise NotImplementedError(f"ops.aten.{self._name}: there is no operator of this name")
        return function(*args, **kwargs)


class _Aten(_Overload):
    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self._name}')>"

    def __getattr__(self, overload: str) -> _Overload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        made = _Overload(self._name, overload)
        setattr(self, overload, made)
        return made


class _AtenNamespace:
    """PyTorch's own operators, as programs name them that look inside."""

    def __getattr__(self, name: str) -> _Aten:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Aten(name)
        setattr(self, name, made)
        return made


aten = _AtenNamespace()


def load_library(path: str) -> NoReturn:
    """Raises OSError: what was compiled for PyTorch's C++ interface cannot be loaded."""
    raise OSError(f"ops.load_library(path): {path} is for PyTorch's C++ interface, which is not here")


def __getattr__(name: str) -> _Namespace:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Namespace(name)
