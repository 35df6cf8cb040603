"""Optimizers that call one operator, which updates all parameters of a group and increments their step counters."""

from __future__ import annotations

from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._batches import as_real, batches
from ._states import StateOptimizer

_COUNTERS = (core.float32, core.float64)  # dtypes of numbers that the operators can update


class CountedSteps(StateOptimizer):
    """The base class of optimizers whose operator updates all parameters of a group and their step counters.

    A subclass defines the entries of the state in `_entries`, and calls its operator in `_call`. The numbers in the state of
    a parameter, such as the number of steps, are float32 tensors on the parameter's device. The operator updates these
    numbers, so that a step never waits for their values and can be recorded in a CUDA graph.
    """

    def _entries(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Return the keys of the state's tensors in the order of the operator's arguments, with "" for unused arguments."""
        raise NotImplementedError

    def _call(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        """Call the operator with lists of parameters, gradients and state tensors, and with the settings of `group`."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: a function that computes the gradients and returns the loss, which `step` returns.
        """
        loss = None if closure is None else self._evaluate(closure)
        state = self.state
        calls = [
            (group, params, grads, [state[param] for param in params])
            for group in self.param_groups
            for params, grads in batches(group["params"])
        ]
        with core.no_grad():
            if len(calls) > 1:  # the first call must not write if a later call would raise an error
                for call in calls:
                    self._check_all(*call)
            for call in calls:
                self._step_from_start(*call)
        self._step_count += 1
        return loss

    def _step_from_start(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        """Create the missing states of parameters that share one device and one dtype, and update these parameters."""
        new = []
        for param, own in zip(params, states, strict=True):
            if not own:
                self._begin(group, param, own)
                new.append(own)
        try:
            self._advance(group, params, grads, states)
        except Exception:
            for own in new:
                own.clear()
            raise

    def _advance(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        """Update parameters that share one device and one dtype; all of them must already have states."""
        entries = [[own[key] for own in states] if key else [] for key in self._entries(group)]
        numbers = [[own[key] for own in states] for key in self._numbers]
        try:
            self._call(group, *as_real(params, grads, *entries), *numbers)
        except Exception:
            self._check_all(group, params, grads, states)  # raise an error that names the wrong entry
            raise

    def _check_all(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        for param, grad, own in zip(params, grads, states, strict=True):
            self._check(group, param, grad, own)

    def _adopt(self, value: Any, param: Any, key: str) -> Any:
        return super()._adopt(value, param, "step" if key in self._numbers else key)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for param in group["params"]:
                own = self.state.get(param, {})
                for key in own.keys() & self._numbers:
                    value = own[key]
                    if not isinstance(value, Tensor) or value.dtype not in _COUNTERS:
                        own[key] = number(float(value), param)


def number(value: float, param: Tensor) -> Tensor:
    """Return a float32 tensor with `value` on the device of `param`, for the state of `param`."""
    return core.full((), value, dtype=core.float32, device=param.device)
