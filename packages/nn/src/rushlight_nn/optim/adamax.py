"""Adamax."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._counted import CountedSteps, number
from ._lists import check_lists, step_lists
from ._states import check_betas
from .optimizer import check_settings, refuse

_adamax_step_ = operator("_adamax_step_")


class Adamax(CountedSteps):
    """Adamax: Adam with a decaying maximum of the gradient's magnitude instead of the mean square (Kingma and Ba 2015).

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        betas: the decay rates of the running mean of the gradient and of the maximum of the gradient's magnitude.
        eps: added to the gradient's magnitude before the maximum is computed.
        weight_decay: the L2 penalty; weight_decay · parameter is added to the gradient.
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
        >>> w = torch.tensor([1.0, 10.0], requires_grad=True)
        >>> optimizer = torch.optim.Adamax([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000, 9.9000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        refuse("Adamax", differentiable=differentiable)
        check_settings("Adamax", lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas("Adamax", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _entries(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "exp_avg", "exp_inf"

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = number(0, param)
        state["exp_avg"] = core.zeros_like(param)
        state["exp_inf"] = core.zeros_like(param)

    def _call(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        beta1, beta2 = group["betas"]
        _adamax_step_(
            *lists,
            lr=float(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """Take a step of :class:`Adamax` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        exp_avgs: running means of the gradients.
        exp_infs: decaying maxima of the gradients' magnitudes.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`Adamax`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import adamax
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> adamax(
        ...     params, grads, [torch.zeros(1)], [torch.zeros(1)], [torch.tensor(0.0)],
        ...     eps=1e-8, beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.0,
        ... )
        >>> params
        [tensor([0.9000])]
    """
    refuse("adamax", differentiable=differentiable)
    check_lists("adamax", params, state_steps)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_inf": exp_infs}
    settings = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
    }  # fmt: skip
    step_lists(Adamax, params, grads, states, settings)
