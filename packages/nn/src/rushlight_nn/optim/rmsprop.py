"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._counted import CountedSteps, number
from ._lists import check_lists, step_lists
from .optimizer import check_settings, refuse

_rmsprop_step_ = operator("_rmsprop_step_")


class RMSprop(CountedSteps):
    """RMSprop: the gradient is divided by the square root of the running mean of its square.

    Each step is ``p = p - lr · gradient / (sqrt(v) + eps)``, where v is the running mean of the squared gradient (Tieleman
    and Hinton, lecture 6.5, 2012). The centred version is from Graves 2013.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        alpha: the decay rate of the running mean.
        eps: added to the denominator for numerical stability.
        weight_decay: the L2 penalty; weight_decay · parameter is added to the gradient.
        momentum: the momentum factor, by which the momentum buffer is multiplied in each step.
        centered: subtract the squared running mean of the gradient from v.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted and ignored; a step always calls one operator for all parameters.
        capturable: accepted and ignored. Steps can always be recorded in a CUDA graph, because the step counters are on
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


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """Take a step of :class:`RMSprop` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        square_avgs: running means of squared gradients.
        grad_avgs: running means of gradients, if `centered`.
        momentum_buffer_list: the momentum buffers, if `momentum` is not zero.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`RMSprop`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import rmsprop
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> rmsprop(
        ...     params, grads, [torch.zeros(1)], [], [], [torch.tensor(0.0)],
        ...     lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False,
        ... )
        >>> params
        [tensor([0.9000])]
    """
    refuse("rmsprop", differentiable=differentiable)
    check_lists("rmsprop", params, state_steps)
    states = {
        "step": state_steps, "square_avg": square_avgs, "grad_avg": grad_avgs if centered else [],
        "momentum_buffer": momentum_buffer_list if momentum > 0 else [],
    }  # fmt: skip
    settings = {
        "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
        "centered": centered, "maximize": maximize,
    }  # fmt: skip
    step_lists(RMSprop, params, grads, states, settings)
