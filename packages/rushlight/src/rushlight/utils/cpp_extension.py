"""C++ extensions for PyTorch's interface, which cannot be built or loaded.

`rushlight_core` installs its own headers and CMake config: see docs/own-operators.md.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["BuildExtension", "CUDA_HOME", "CUDAExtension", "CppExtension", "load", "load_inline"]

CUDA_HOME: str | None = None
ROCM_HOME: str | None = None


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"cpp_extension.{name}(): PyTorch's C++ interface is not available\nhint: see docs/own-operators.md"
    )


def load(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: extensions for PyTorch's C++ interface cannot be built.

    Example:
        >>> load("extension", ["extension.cpp"])
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """
    _refuse("load")


def load_inline(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: extensions for PyTorch's C++ interface cannot be built.

    Example:
        >>> load_inline("extension", cpp_sources="")
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """
    _refuse("load_inline")


def CppExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: extensions for PyTorch's C++ interface cannot be built.

    Example:
        >>> CppExtension("extension", ["extension.cpp"])
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """
    _refuse("CppExtension")


def CUDAExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: extensions for PyTorch's C++ interface cannot be built.

    Example:
        >>> CUDAExtension("extension", ["extension.cu"])
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """
    _refuse("CUDAExtension")


class BuildExtension:
    """Command of setuptools that builds extensions. Not supported: creating an instance raises NotImplementedError.

    Example:
        >>> BuildExtension()
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("BuildExtension")
