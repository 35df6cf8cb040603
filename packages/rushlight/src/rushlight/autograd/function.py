"""Function and what goes with it: rushlight_autograd.function."""

from rushlight_autograd.function import Function, FunctionCtx, once_differentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
