"""Methods of Tensor that need Python; imported when one of them is first called."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from . import _C
from ._C import Tensor


def reversed_tensor(self: Tensor) -> Tensor:
    """`reversed(tensor)`: its rows in the other order."""
    return self[_C.arange(len(self) - 1, -1, -1)] if self.dim() else self


# --- gradients: rushlight-autograd puts its own methods in the place of these ---


def _no_provider(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name}(): gradients are computed by a package of their own, which is not imported\n"
        "hint: pip install rushlight-autograd, then import rushlight_autograd (or rushlight, which does)"
    )


def backward(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError that names the package to install."""
    _no_provider("backward")


def register_hook(self: Tensor, hook: Any) -> NoReturn:
    """Raises RuntimeError that names the package to install."""
    _no_provider("register_hook")


def retain_grad(self: Tensor) -> NoReturn:
    """Raises RuntimeError that names the package to install."""
    _no_provider("retain_grad")


# --- shared memory: the transport that is installed ---


def _transport() -> Any:
    # By name: core knows of no package that builds on it.
    name = "rushlight_multiprocessing"
    try:
        return import_module(name)
    except ImportError as error:
        if error.name != name:
            raise
        raise RuntimeError(
            "share_memory_(): shared memory comes with a package of its own\n"
            "hint: pip install rushlight-multiprocessing"
        ) from None


def share_memory_(self: Tensor) -> Tensor:
    """Moves the data to shared memory, in place; returns self. A tensor on a GPU stays as it is."""
    return self if self.is_cuda else _transport().share_memory_(self)


def is_shared(self: Tensor) -> bool:
    """Whether the data is in shared memory."""
    import sys

    # What was never imported has shared nothing.
    package = sys.modules.get("rushlight_multiprocessing")
    return self.is_cuda or (package is not None and package.is_shared(self))
