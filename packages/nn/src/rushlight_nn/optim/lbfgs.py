"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._states import as_real
from .line_search import strong_wolfe
from .optimizer import Optimizer, check_settings


class LBFGS(Optimizer):
    """L-BFGS: a quasi-Newton method that estimates the curvature from the last steps (Liu and Nocedal 1989).

    In a step, the optimizer calls the closure several times to evaluate the loss and its gradients. There is only one
    parameter group, and all of its parameters are updated. Complex parameters are treated as pairs of real numbers.

    Args:
        params: tensors, or one parameter group.
        lr: the factor by which each quasi-Newton update is multiplied.
        max_iter: the largest number of iterations in one call of `step`.
        max_eval: the number of evaluations of the closure after which a call of `step` ends; 1.25 · max_iter by default.
        tolerance_grad: stop if no element of the gradient has a magnitude above this number.
        tolerance_change: stop if the change of the loss is below this number, or no element of a parameter changes by
            more than this number.
        history_size: the number of past iterations from which the curvature is estimated.
        line_search_fn: "strong_wolfe" selects a line search along the update. With None, the update is
            multiplied by `lr`; in the first iteration, by lr · min(1, 1 / s), where s is the sum of the
            magnitudes of the gradient's elements.

    Shape:
        - Parameters: (*), any shapes; the state is one vector of all their elements.

    Raises:
        ValueError: there is more than one parameter group, or `lr` is negative.
        RuntimeError: `line_search_fn` is unknown.
        TypeError: `step` is called without a closure.

    Example:
        >>> x = torch.tensor([-1.2, 1.0], requires_grad=True)  # minimise Rosenbrock's function
        >>> optimizer = torch.optim.LBFGS([x], max_iter=100, line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        ...     loss.backward()
        ...     return loss
        >>> _ = optimizer.step(closure)
        >>> bool((x - 1).abs().max() < 1e-2)
        True
    """

    _step_count: int = 0

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_settings("LBFGS", lr=lr)
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError(f"LBFGS(line_search_fn): got {line_search_fn!r}, needs 'strong_wolfe' or None")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                f"LBFGS(params): got {len(self.param_groups)} parameter groups, needs exactly one"
            )

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _gradient(self) -> Tensor:
        """Return all gradients as one vector."""
        grads = [core.zeros_like(p) if p.grad is None else p.grad for p in self._params]
        return core.cat([as_real(grad.to_dense()).reshape(-1) for grad in grads])

    def _move(self, length: float, direction: Tensor) -> None:
        start = 0
        for param in self._params:
            values = as_real(param)
            part = direction[start : start + values.numel()]
            values.add_(part.reshape(values.shape), alpha=length)
            start += values.numel()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Run up to `max_iter` iterations; `closure` computes the gradients and returns the loss.

        Returns:
            the loss before the first iteration.
        """
        if closure is None:
            raise TypeError("LBFGS.step(closure): needs a function that computes the loss and its gradients")
        with core.no_grad():
            first = self._iterate(closure)
        self._step_count += 1
        return first

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        state = self.state[self._params[0]]  # the state of all parameters is stored with the first parameter
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = self._evaluate(closure)
        loss, evaluations = float(first), 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if float(gradient.abs().max()) <= group["tolerance_grad"]:
            return first
        direction, length, previous = state.get("d"), state.get("t"), loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, direction, length, gradient)
            state["prev_flat_grad"] = gradient.clone()
            previous = loss
            lr = float(group["lr"])
            length = min(1.0, 1.0 / float(gradient.abs().sum())) * lr if state["n_iter"] == 1 else lr
            slope = float(gradient.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] == "strong_wolfe":
                start = [param.clone() for param in self._params]

                def evaluate(t: float, start: Any = start, along: Tensor = direction) -> tuple[float, Tensor]:
                    self._move(t, along)
                    value = float(self._evaluate(closure))
                    found = self._gradient()
                    for param, old in zip(self._params, start, strict=True):
                        param.copy_(old)
                    return value, found

                loss, gradient, length, used = strong_wolfe(
                    evaluate, length, direction, loss, gradient, slope
                )
                self._move(length, direction)
            else:
                self._move(length, direction)
                if iteration != group["max_iter"]:
                    loss = float(self._evaluate(closure))
                    gradient = self._gradient()
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= group["max_eval"]
                or float(gradient.abs().max()) <= group["tolerance_grad"]
                or float((direction * length).abs().max()) <= group["tolerance_change"]
                or abs(loss - previous) < group["tolerance_change"]
            ):
                break
        state["d"], state["t"], state["prev_loss"] = direction, length, previous
        return first

    def _direction(self, state: dict[str, Any], direction: Any, length: Any, gradient: Tensor) -> Tensor:
        """Return the negative product of the estimated inverse Hessian and the gradient."""
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"] = [], [], []
            state["H_diag"] = 1.0
            return -gradient
        steps, changes, inverses = state["old_stps"], state["old_dirs"], state["ro"]
        change, step = gradient - state["prev_flat_grad"], direction * length
        curvature = float(change.dot(step))
        if curvature > 1e-10:
            if len(changes) == self.param_groups[0]["history_size"]:
                for history in (changes, steps, inverses):
                    history.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / float(change.dot(change))
        result = -gradient
        # The factors, one for each entry of the history, are stored in the state, as in PyTorch.
        factors = state.setdefault("al", [None] * self.param_groups[0]["history_size"])
        for i in reversed(range(len(steps))):
            factors[i] = float(steps[i].dot(result)) * float(inverses[i])
            result = result.add(changes[i], alpha=-factors[i])
        result = result * state["H_diag"]
        for i in range(len(steps)):
            change_back = float(changes[i].dot(result)) * float(inverses[i])
            result = result.add(steps[i], alpha=factors[i] - change_back)
        return result
