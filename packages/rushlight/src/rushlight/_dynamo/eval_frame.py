"""Compiled modules, under PyTorch's module path."""

from __future__ import annotations

from typing import Any

from rushlight_nn import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """The class of compiled modules, for `isinstance` checks. Creating an instance raises NotImplementedError.

    Example:
        >>> isinstance(torch.compile(nn.Linear(2, 2)), OptimizedModule)
        False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("OptimizedModule(): cannot be created, because there is no compiler")
