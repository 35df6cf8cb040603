"""Parameter and Buffer: tensors that a module registers when they are assigned to it."""

from __future__ import annotations

from copy import deepcopy

import rushlight_core as core
from rushlight_core import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A Parameter computes as the tensor it is: the result of an operator on parameters is a plain tensor.
_plain_results = getattr(getattr(core, "_C", None), "_disabled_torch_function_impl", None)


class Parameter(Tensor):
    """A tensor that belongs to a module's trainable state.

    Assigned to an attribute of a :class:`Module` it appears in `module.parameters()` and in its state.

    Args:
        data: the values; shared, not copied. Default: an empty tensor.
        requires_grad: whether gradients are recorded. Only floating-point parameters can require them.

    Raises:
        TypeError: `data` is not a tensor.
    """

    if _plain_results is not None:
        __torch_function__ = _plain_results

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = core.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"{cls.__name__}(data): got {type(data).__name__}, needs a tensor\n"
                "hint: make one with tensor(...) first"
            )
        return Tensor._make_subclass(cls, data, requires_grad)

    def __repr__(self) -> str:
        return f"{type(self).__name__} containing:\n{self.detach().requires_grad_(self.requires_grad)!r}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        copy = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        if self.__dict__:
            copy.__dict__.update(deepcopy(self.__dict__, memo))
        return copy

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.detach(), self.requires_grad, dict(self.__dict__) or None)


def _rebuild(cls: type, data: Tensor, requires_grad: bool, attributes: dict[str, Any] | None) -> Any:
    tensor = cls(data, requires_grad=requires_grad)
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


class Buffer(Tensor):
    """A tensor that belongs to a module's state but is not trained, such as a running mean.

    Args:
        data: the values; shared, not copied. Default: an empty tensor.
        persistent: whether the module's `state_dict` holds it.
    """

    persistent: bool

    if _plain_results is not None:
        __torch_function__ = _plain_results

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = core.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"{cls.__name__}(data): got {type(data).__name__}, needs a tensor")
        buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        if id(self) in memo:
            return memo[id(self)]
        copy = memo[id(self)] = type(self)(self.detach().clone(), persistent=self.persistent)
        copy.requires_grad_(self.requires_grad)
        return copy

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild_buffer, (type(self), self.detach(), self.persistent, self.requires_grad)


def _rebuild_buffer(cls: type, data: Tensor, persistent: bool, requires_grad: bool) -> Any:
    return cls(data, persistent=persistent).requires_grad_(requires_grad)


__all__ = ["Buffer", "Parameter"]
