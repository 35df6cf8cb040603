"""Optimizers that update one parameter after the other."""

from __future__ import annotations

from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from .optimizer import Optimizer

_NUMBERS = frozenset(("step", "eta", "mu", "mu_product"))  # entries of states that are numbers


class EachParameter(Optimizer):
    """The base of optimizers that update one parameter at a time; a subclass defines the update."""

    _step_count: int = 0
    _reads_count = True  # whether updates depend on the step count, which is on the CPU

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        """Fill the state of a real parameter before its first update."""
        raise NotImplementedError

    def _begin(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        """Fill the state of a parameter. For a complex parameter, the entries are complex, as in PyTorch."""
        values = as_real(param)
        self._start(group, values, state)
        if param.is_complex():
            state.update(_complex_entries(state, values.shape))

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        """Update `param` in place. The gradient already includes `maximize` and, if `_decays` is true, weight decay."""
        raise NotImplementedError

    def _decays(self, group: dict[str, Any]) -> bool:
        """Return whether weight decay is set and is to be added to the gradient."""
        return "weight_decay" in self.defaults and bool(group["weight_decay"])

    def _check(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        """Raise an error if a step of `param` is impossible. A step checks all parameters before it changes any."""
        shape, device = param.shape, param.device
        if grad.is_sparse:
            self._check_sparse(group)
        if grad.shape != shape or grad.device != device:
            raise RuntimeError(
                f"{type(self).__name__}.step(): the gradient of a parameter must have its shape and device, "
                f"{tuple(shape)} on {device}, got {tuple(grad.shape)} on {grad.device}"
            )
        if self._reads_count and device.type != "cpu":
            self._refuse_capture(device)
        for key, value in state.items():
            if key not in _NUMBERS and isinstance(value, Tensor) and value.shape != shape:
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

    def _refuse_capture(self, device: Any) -> None:
        if core.devices.is_current_stream_capturing(device):
            raise RuntimeError(
                f"{type(self).__name__}.step(): cannot be recorded in a graph: updates depend on the step count, "
                "which is on the CPU\nhint: use Adam, AdamW or SGD, whose steps can be recorded"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: a function that computes the gradients and returns the loss. Its result is returned.
        """
        loss = None if closure is None else self._evaluate(closure)
        states, check = self.state, self._check
        steps = []
        for group in self.param_groups:
            decay = group["weight_decay"] if self._decays(group) else 0
            for param in group["params"]:
                grad = param.grad
                if grad is not None:
                    state = states[param]
                    check(group, param, grad, state)
                    steps.append((group, param, grad, state, decay))
        with core.no_grad():
            for step in steps:
                self._update_one(*step)
        self._step_count += 1
        return loss

    def _update_one(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], decay: float
    ) -> None:
        """Take a step of one parameter. `decay` is the weight decay to be added to the gradient."""
        if not state:
            self._begin(group, param, state)
        if "step" in state:
            state["step"] += 1
        given, values = state, param
        if param.is_complex():
            given = {key: _real_entry(value) for key, value in state.items()}
            values, grad = core.view_as_real(param), core.view_as_real(grad)
        if group.get("maximize"):
            grad = -grad
        if decay:
            grad = grad + values * decay
        if given is state:
            self._update(group, values, grad, state)
        else:
            before = dict(given)
            self._update(group, values, grad, given)
            state.update((key, value) for key, value in given.items() if value is not before[key])


def as_real(tensor: Tensor) -> Tensor:
    """Return a complex tensor as a view of its real and imaginary parts; return other tensors unchanged."""
    return core.view_as_real(tensor) if tensor.is_complex() else tensor


def _real_entry(value: Any) -> Any:
    return as_real(value) if isinstance(value, Tensor) else value


def _complex_entries(state: dict[str, Any], shape: Any) -> dict[str, Any]:
    """Return complex views of those entries of a state that have the shape `shape` of the parameter's real view."""
    return {
        key: core.view_as_complex(value)
        for key, value in state.items()
        if isinstance(value, Tensor) and value.shape == shape
    }


def counter() -> Tensor:
    """Return a new step counter: float32, and on the CPU, so that reading it does not wait for a device."""
    return core.zeros((), dtype=core.float32)


def check_betas(optimizer: str, betas: tuple[float, float]) -> None:
    """Raise ValueError unless both betas are at least 0 and below 1."""
    for position, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(
                f"{optimizer}(betas): entry {position} must be at least 0 and below 1, got {beta}"
            )
