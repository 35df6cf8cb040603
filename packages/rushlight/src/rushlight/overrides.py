"""Functions for classes that define `__torch_function__`, implemented in rushlight_core.overrides."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight_core.overrides import *  # noqa: F403
from rushlight_core.overrides import __all__ as _of_core

__all__ = [*_of_core, "TorchFunctionMode"]


class TorchFunctionMode:
    """The base class of modes that intercept every function in PyTorch.

    Entering such a mode raises NotImplementedError. Classes that define `__torch_function__` are supported.

    Example:
        >>> with TorchFunctionMode():
        ...     torch.ones(2)
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__}: modes that intercept every function are not supported\n"
            "hint: define __torch_function__ in a class"
        )

    def __exit__(self, *error: Any) -> None:
        pass
