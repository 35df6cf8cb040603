"""Adadelta."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._counted import CountedSteps, number
from ._lists import check_lists, step_lists
from .optimizer import check_settings, refuse

_adadelta_step_ = operator("_adadelta_step_")


class Adadelta(CountedSteps):
    """Adadelta: steps scaled by the root mean square of earlier steps (Zeiler 2012).

    Each step is ``p = p - lr · gradient · sqrt(d + eps) / sqrt(v + eps)``, where v is a running mean of the squared
    gradients, and d is a running mean of the squared steps.

    Args:
        params: tensors or parameter groups.
        lr: the factor by which each step is multiplied.
        rho: the decay rate of the running means.
        eps: added to d and v under the square roots, for numerical stability.
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
        >>> optimizer = torch.optim.Adadelta([w], eps=1e-2)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()  # 1 - 2 · sqrt(0.01) / sqrt(0.1 · 2² + 0.01)
        tensor([0.6877])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse("Adadelta", differentiable=differentiable)
        check_settings("Adadelta", lr=lr, eps=eps, weight_decay=weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Adadelta(rho): got {rho}, needs 0 <= rho <= 1")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _entries(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "square_avg", "acc_delta"

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = number(0, param)
        state["square_avg"] = core.zeros_like(param)
        state["acc_delta"] = core.zeros_like(param)

    def _call(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        _adadelta_step_(
            *lists,
            lr=float(group["lr"]),
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Take a step of :class:`Adadelta` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        square_avgs: running means of squared gradients.
        acc_deltas: running means of squared steps.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`Adadelta`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: `differentiable` is true.

    Example:
        >>> from rushlight_nn.optim.functional import adadelta
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> adadelta(
        ...     params, grads, [torch.zeros(1)], [torch.zeros(1)], [torch.tensor(0.0)],
        ...     lr=1.0, rho=0.9, eps=1e-2, weight_decay=0.0, maximize=False,
        ... )
        >>> params
        [tensor([0.6877])]
    """
    refuse("adadelta", differentiable=differentiable)
    check_lists("adadelta", params, state_steps)
    states = {"step": state_steps, "square_avg": square_avgs, "acc_delta": acc_deltas}
    settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
    step_lists(Adadelta, params, grads, states, settings)
