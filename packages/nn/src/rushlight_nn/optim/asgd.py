"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._counted import CountedSteps, number
from ._lists import check_lists, step_lists
from .optimizer import check_settings, refuse

_asgd_step_ = operator("_asgd_step_")


class ASGD(CountedSteps):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992).

    The running average of a parameter over the steps is stored in `optimizer.state[parameter]["ax"]`. The optimizer does not
    copy the average to the parameter.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        lambd: the decay rate of the parameters and of the learning rate.
        alpha: the exponent in the decay of the learning rate.
        t0: the step at which averaging starts.
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


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """Take a step of :class:`ASGD` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        axs: running averages of the parameters.
        mus: for each parameter, the weight of its new value in the running average.
        etas: learning rates.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`ASGD`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import asgd
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> asgd(
        ...     params, grads, [torch.zeros(1)], [torch.ones(())], [torch.tensor(0.1)], [torch.tensor(0.0)],
        ...     lambd=1e-4, lr=0.1, t0=1e6, alpha=0.75, weight_decay=0.0,
        ... )
        >>> params
        [tensor([0.8000])]
    """
    refuse("asgd", differentiable=differentiable)
    check_lists("asgd", params, state_steps)
    states = {"step": state_steps, "ax": axs, "mu": mus, "eta": etas}
    settings = {
        "lambd": lambd, "lr": lr, "t0": t0, "alpha": alpha, "weight_decay": weight_decay, "maximize": maximize,
    }  # fmt: skip
    step_lists(ASGD, params, grads, states, settings)
