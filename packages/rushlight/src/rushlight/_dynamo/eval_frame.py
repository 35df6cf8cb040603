"""Compiled modules, by the file that PyTorch has them in."""

from __future__ import annotations

from typing import Any

from rushlight_nn import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """A compiled module, for `isinstance`: there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("OptimizedModule(): there is no compiler")
