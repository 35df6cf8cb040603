"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._counted import CountedSteps, number
from .optimizer import check_settings, refuse

_rmsprop_step_ = operator("_rmsprop_step_")


class RMSprop(CountedSteps):
    """RMSprop: steps divided by the root of the running mean of the squared gradient.

    Each step is ``p = p - lr · gradient / (sqrt(v) + eps)``, where v is the running mean of the squared gradient (Tieleman
    and Hinton, lecture 6.5, 2012). The centred version is from Graves 2013.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        alpha: the decay rate of the running mean.
        eps: added to the denominator for numerical stability.
        weight_decay: the L2 penalty; weight_decay · parameter is added to the gradient.
        momentum: the factor by which the previous step direction is multiplied before it is added to the current direction.
        centered: subtract the squared running mean of the gradient from v.
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
        >>> w = torch.tensor([2.0, 10.0], requires_grad=True)
        >>> optimizer = torch.optim.RMSprop([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()  # the first step has the length lr / sqrt(1 - alpha)
        tensor([1.0000, 9.0000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse("RMSprop", differentiable=differentiable)
        check_settings("RMSprop", lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _entries(self, group: dict[str, Any]) -> tuple[str, ...]:
        return (
            "square_avg",
            "grad_avg" if group["centered"] else "",
            "momentum_buffer" if group["momentum"] > 0 else "",
        )

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = number(0, param)
        state["square_avg"] = core.zeros_like(param)
        if group["momentum"] > 0:
            state["momentum_buffer"] = core.zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = core.zeros_like(param)

    def _call(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        _rmsprop_step_(
            *lists,
            lr=float(group["lr"]),
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            centered=group["centered"],
            maximize=group["maximize"],
        )
