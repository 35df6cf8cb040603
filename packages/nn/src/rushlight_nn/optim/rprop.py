"""Rprop."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._counted import CountedSteps, number
from .optimizer import check_settings, refuse

_rprop_step_ = operator("_rprop_step_")


class Rprop(CountedSteps):
    """Rprop: steps that depend only on the gradient's sign, grow while the sign is constant, and shrink when it changes.

    Only the sign of the gradient matters, so gradients should be computed from all samples (Riedmiller and Braun 1993).

    Args:
        params: tensors or parameter groups.
        lr: the length of the first step.
        etas: two factors of the step length: the first for elements whose gradient changed its sign, the second for elements
            whose gradient kept its sign.
        step_sizes: the smallest and the largest step length.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted and ignored; a step always calls one operator for all parameters.
        capturable: accepted and ignored. Steps can always be recorded in a device graph, because the step counters are on
            the devices of the parameters.
        differentiable: not supported.

    Shape:
        - Parameters: (*), any shape. Each tensor in the state is a scalar or has the shape of its parameter.

    Raises:
        ValueError: `lr` is negative or `etas` are out of range.

    Example:
        >>> w = torch.tensor([1.0, 10.0], requires_grad=True)
        >>> optimizer = torch.optim.Rprop([w], lr=0.1)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w.detach()  # steps of 0.1 and 0.12
        tensor([0.7800, 9.7800])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse("Rprop", differentiable=differentiable)
        check_settings("Rprop", lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Rprop(etas): got {etas}, needs a number between 0 and 1, and a number above 1")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _entries(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "prev", "step_size"

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = number(0, param)
        state["prev"] = core.zeros_like(param)
        state["step_size"] = core.full_like(param, float(group["lr"]))

    def _call(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        etaminus, etaplus = group["etas"]
        shortest, longest = group["step_sizes"]
        _rprop_step_(
            *lists,
            etaminus=etaminus,
            etaplus=etaplus,
            step_size_min=shortest,
            step_size_max=longest,
            maximize=group["maximize"],
        )
