"""Variable: what tensors with gradients once were, when they were not tensors."""

from __future__ import annotations

from typing import Any

from rushlight_core import Tensor


class _Meta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False) -> Tensor:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable(data): must be a Tensor, not {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_Meta):
    """`Variable(data, requires_grad)` is a tensor over the memory of `data`; every tensor is one."""
