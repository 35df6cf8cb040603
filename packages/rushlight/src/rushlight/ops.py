"""Access to custom operators by name: `ops.namespace.name` is the operator that `library.custom_op` defined."""

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
    """A PyTorch operator named by its overload, such as `aten.add.Tensor`.

    All overloads of an operator call the same public function, such as `add`, or the Tensor method of this
    name."""

    def __init__(self, name: str, overload: str) -> None:
        self.__name__: str = f"{name}.{overload}"
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
    """The namespace `ops.aten`, which contains PyTorch's built-in operators."""

    def __getattr__(self, name: str) -> _Aten:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Aten(name)
        setattr(self, name, made)
        return made


aten: _AtenNamespace = _AtenNamespace()


def load_library(path: str) -> NoReturn:
    """Raise OSError, since libraries compiled for PyTorch's C++ interface cannot be loaded."""
    raise OSError(f"ops.load_library(path): cannot load {path}, which needs PyTorch's C++ interface")


def __getattr__(name: str) -> _Namespace:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Namespace(name)
