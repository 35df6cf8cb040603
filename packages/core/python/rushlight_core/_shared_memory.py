"""Shared memory, which the package rushlight-multiprocessing provides."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import _C
from ._C import Tensor


def shared_memory_package() -> Any:
    """Return the package that moves tensors to shared memory. Raises RuntimeError if it is not installed."""
    # The name is not imported statically, because core does not depend on packages that build on it.
    name = "rushlight_multiprocessing"
    try:
        return import_module(name)
    except ImportError as error:
        if error.name != name:
            raise
        raise RuntimeError(
            "share_memory_(): shared memory is provided by another package\n"
            "hint: pip install rushlight-multiprocessing"
        ) from None


def share_memory_(self: Tensor) -> Tensor:
    """Move the data to shared memory, in place, and return the tensor. A tensor on a GPU is not changed."""
    if not self.is_cuda:
        _C._require_values("share_memory_()", self)
    return self if self.is_cuda else shared_memory_package().share_memory_(self)


def is_shared(self: Tensor) -> bool:
    """Return whether the data is in shared memory."""
    import sys

    # If the package was never imported, no memory is shared.
    package = sys.modules.get("rushlight_multiprocessing")
    return self.is_cuda or (package is not None and package.is_shared(self))
