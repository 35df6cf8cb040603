"""RAdam."""

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

_radam_step_ = operator("_radam_step_")


class RAdam(CountedSteps):
    """RAdam: Adam without the division by sqrt(v̂) in the first steps (Liu et al. 2020).

    In these steps, the running mean v̂ of the squared gradients has a large variance.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the denominator for numerical stability.
        weight_decay: the L2 penalty; weight_decay · parameter is added to the gradient; see `decoupled_weight_decay`.
        decoupled_weight_decay: subtract lr · weight_decay · parameter from the parameter, as :class:`AdamW`
            does, instead of changing the gradient.
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
        >>> optimizer = torch.optim.RAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()  # the first step is p - lr · gradient
        tensor([0.8000, 8.0000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse("RAdam", differentiable=differentiable)
        check_settings("RAdam", lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas("RAdam", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _entries(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq"

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = number(0, param)
        state["exp_avg"] = core.zeros_like(param)
        state["exp_avg_sq"] = core.zeros_like(param)

    def _call(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        beta1, beta2 = group["betas"]
        _radam_step_(
            *lists,
            lr=float(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled_weight_decay=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """Take a step of :class:`RAdam` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        exp_avgs: running means of the gradients.
        exp_avg_sqs: running means of the squared gradients.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`RAdam`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import radam
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> radam(
        ...     params, grads, [torch.zeros(1)], [torch.zeros(1)], [torch.tensor(0.0)],
        ...     beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.0, eps=1e-8,
        ... )
        >>> params
        [tensor([0.8000])]
    """
    refuse("radam", differentiable=differentiable)
    check_lists("radam", params, state_steps)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    settings = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay,
        "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
    }  # fmt: skip
    step_lists(RAdam, params, grads, states, settings)
