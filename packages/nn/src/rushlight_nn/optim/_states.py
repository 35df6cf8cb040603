"""The base class of optimizers that create a state for each parameter and check it before a step."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from .optimizer import Optimizer


class StateOptimizer(Optimizer):
    """The base class of optimizers that check all gradients and states before they change a parameter."""

    _step_count: int = 0
    _numbers: tuple[str, ...] = ("step",)  # keys of the numbers in the state

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        """Initialise the state of `param`, which is not complex, before its first update."""
        raise NotImplementedError

    def _begin(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        """Initialise the state of a parameter. For a complex parameter, the entries are complex, as in PyTorch."""
        values = as_real(param)
        self._start(group, values, state)
        if param.is_complex():
            state.update(_complex_entries(state, values.shape))

    def _check(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        """Raise an error if `param` cannot be updated with `grad` and `state`."""
        shape, device = param.shape, param.device
        if grad.is_sparse:
            self._check_sparse(group)
        if grad.shape != shape or grad.device != device:
            raise RuntimeError(
                f"{type(self).__name__}.step(): a gradient must have the shape and device of its parameter, "
                f"{tuple(shape)} on {device}, got {tuple(grad.shape)} on {grad.device}"
            )
        for key, value in state.items():
            if key not in self._numbers and isinstance(value, Tensor) and value.shape != shape:
                self._check_entry(key, value, tuple(shape))

    def _check_entry(self, key: str, value: Tensor, shape: tuple[int, ...]) -> None:
        """Raise an error if an entry of a state does not fit a parameter of shape `shape`."""
        wanted = self._shape_in_state(key, shape)
        if value.shape != wanted:
            raise RuntimeError(
                f"{type(self).__name__}.step(): {key!r} in the state of a parameter of shape {shape} must have the "
                f"shape {wanted}, got {tuple(value.shape)}\n"
                "hint: remove `optimizer.state[parameter]` after changing the shape of a parameter"
            )

    def _check_sparse(self, group: dict[str, Any]) -> None:
        """Raise an error if the optimizer does not support sparse gradients."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _shape_in_state(self, key: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the entry `key` in the state of a parameter of shape `shape`."""
        return shape


def as_real(tensor: Tensor) -> Tensor:
    """Return a complex tensor as a view of its real and imaginary parts; return other tensors unchanged."""
    return core.view_as_real(tensor) if tensor.is_complex() else tensor


def _complex_entries(state: dict[str, Any], shape: Any) -> dict[str, Any]:
    """Convert the entries of `state` that have the shape `shape` to complex tensors, and return only these entries.

    `shape` is the shape of the parameter as a real tensor; see `as_real`.
    """
    return {
        key: core.view_as_complex(value)
        for key, value in state.items()
        if isinstance(value, Tensor) and value.shape == shape
    }


def check_betas(optimizer: str, betas: tuple[float, float]) -> None:
    """Raise ValueError unless there are two betas, both at least 0 and below 1."""
    if len(betas) != 2:
        raise ValueError(f"{optimizer}(betas): needs two numbers, got {betas}")
    for position, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(
                f"{optimizer}(betas): entry {position} must be at least 0 and below 1, got {beta}"
            )
