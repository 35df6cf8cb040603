"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._counted import CountedSteps, number
from .optimizer import check_settings, refuse

_asgd_step_ = operator("_asgd_step_")


class ASGD(CountedSteps):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992).

    The running average of a parameter over the steps is stored in `optimizer.state[parameter]["ax"]`. This average does not
    replace the parameter.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        lambd: the decay rate of the parameters and of the learning rate.
        alpha: the exponent of the decay of the learning rate.
        t0: the step at which averaging starts.
        weight_decay: the L2 penalty; weight_decay · parameter is added to the gradient.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted and ignored; a step always calls one operator for all parameters.
        capturable: accepted and ignored. Steps can always be recorded in a device graph, because the step counters are on
            the devices of the parameters.
        differentiable: not supported.

    Shape:
        - Parameters: (*), any shape. Each tensor in the state is a scalar or has the shape of its parameter.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> w = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.ASGD([w], lr=0.1, t0=0)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w.item(), optimizer.state[w]["ax"].item()
        (0.5119836330413818, 0.5759844183921814)
    """

    _numbers = ("mu", "eta", "step")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        refuse("ASGD", differentiable=differentiable)
        check_settings("ASGD", lr=lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _entries(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("ax",)

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = number(0, param)
        state["eta"] = number(float(group["lr"]), param)
        state["mu"] = number(1, param)
        state["ax"] = core.zeros_like(param)

    def _call(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        _asgd_step_(
            *lists,
            lr=float(group["lr"]),
            lambd=group["lambd"],
            alpha=group["alpha"],
            t0=group["t0"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
