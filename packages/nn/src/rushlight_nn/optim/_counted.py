"""Optimizers whose step is one operator for all parameters of a group, which also counts the step."""

from __future__ import annotations

from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._batches import as_real, batches
from ._states import StateOptimizer

_COUNTERS = (core.float32, core.float64)  # dtypes of numbers that the operators can advance


class CountedSteps(StateOptimizer):
    """The base of these optimizers; a subclass names the entries of its state and calls its operator.

    The numbers of a parameter's state, such as the number of steps, are float32 tensors on the parameter's device. The
    operator advances them, so that a step never waits for their values and can be recorded in a graph.
    """

    def _entries(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Return the operator's entries of the state except numbers, in its order; "" for an entry that is not used."""
        raise NotImplementedError

    def _call(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        """Call the operator with lists of the parameters, gradients, entries and numbers, and with the group's settings."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: a function that computes the gradients and returns the loss. Its result is returned.
        """
        loss = None if closure is None else self._evaluate(closure)
        state = self.state
        calls = [
            (group, params, grads, [state[param] for param in params])
            for group in self.param_groups
            for params, grads in batches(group["params"])
        ]
        with core.no_grad():
            if len(calls) > 1:  # the operator checks its own arguments, but not those of the following calls
                for call in calls:
                    self._check_all(*call)
            for call in calls:
                self._step_from_start(*call)
        self._step_count += 1
        return loss

    def _step_from_start(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        """Take a step of parameters of one device and dtype, and create the states that are empty."""
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
        """Take a step of parameters of one device and dtype."""
        entries = [[own[key] for own in states] if key else [] for key in self._entries(group)]
        numbers = [[own[key] for own in states] for key in self._numbers]
        try:
            self._call(group, *as_real(params, grads, *entries), *numbers)
        except Exception:
            self._check_all(group, params, grads, states)  # raises an error that says which entry is wrong
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
    """Return a number of the state of `param`: float32, whatever the dtype of `param`."""
    return core.full((), value, dtype=core.float32, device=param.device)
