"""The class `Variable`, with which PyTorch formerly added gradients to tensors. Now tensors have gradients themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight_autograd._C import _queue_callback
from rushlight_core import Tensor


class _Engine:
    """The class of `Variable._execution_engine`, which has only the method `queue_callback`."""

    def queue_callback(self, callback: Callable[[], object]) -> None:
        """Register a function to be called when the outermost backward pass on this thread ends without an error.

        Raises RuntimeError outside of hooks and backward functions."""
        _queue_callback(callback)


class _Meta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False) -> Tensor:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable(data): must be a Tensor, not {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_Meta):
    """A class that old programs use: ``Variable(data, requires_grad)`` is a tensor that shares the memory of `data`.

    Every tensor is an instance of this class.

    Example:
        >>> isinstance(torch.ones(1), torch.autograd.Variable)
        True
    """

    _execution_engine: _Engine = _Engine()
