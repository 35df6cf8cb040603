"""Optimizers that update parameters one by one."""

from __future__ import annotations

from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._states import StateOptimizer


class EachParameter(StateOptimizer):
    """The base class of optimizers that update real parameters one by one. A subclass defines `_start` and `_update`."""

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        """Update `param` in place. If `maximize` is set, `grad` is the negated gradient."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: a function that computes the gradients and returns the loss, which `step` returns.
        """
        loss = None if closure is None else self._evaluate(closure)
        states, check = self.state, self._check
        steps = []
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is not None:
                    state = states[param]
                    check(group, param, grad, state)
                    steps.append((group, param, grad, state))
        with core.no_grad():
            for group, param, grad, state in steps:
                if not state:
                    self._start(group, param, state)
                if "step" in state:
                    state["step"] += 1
                self._update(group, param, -grad if group.get("maximize") else grad, state)
        self._step_count += 1
        return loss
