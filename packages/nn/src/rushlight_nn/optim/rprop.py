"""Rprop."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._counted import CountedSteps, number
from ._lists import check_lists, step_lists
from .optimizer import check_settings, refuse

_rprop_step_ = operator("_rprop_step_")


class Rprop(CountedSteps):
    """Rprop: steps that depend only on the gradient's sign, grow while the sign is constant, and shrink when it changes.

    Only the sign of the gradient matters, so gradients should be computed from all samples (Riedmiller and Braun 1993).

    Args:
        params: tensors or parameter groups.
        lr: the size of the first step.
        etas: two factors of the step size: the first for elements whose gradient changed its sign, the second
            for elements whose gradient kept its sign.
        step_sizes: the smallest and the largest step size.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted and ignored; a step always calls one operator for all parameters.
        capturable: accepted and ignored. Steps can always be recorded in a CUDA graph, because the step counters are on the
            devices of the parameters.
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


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """Take a step of :class:`Rprop` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        prevs: the gradients of the previous step.
        step_sizes: the step sizes of the elements.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`Rprop`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import rprop
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> rprop(
        ...     params, grads, [torch.zeros(1)], [torch.tensor([0.1])], [torch.tensor(0.0)],
        ...     step_size_min=1e-6, step_size_max=50, etaminus=0.5, etaplus=1.2,
        ... )
        >>> params
        [tensor([0.9000])]
    """
    refuse("rprop", differentiable=differentiable)
    check_lists("rprop", params, state_steps)
    states = {"step": state_steps, "prev": prevs, "step_size": step_sizes}
    settings = {
        "etas": (etaminus, etaplus), "step_sizes": (step_size_min, step_size_max), "maximize": maximize,
    }  # fmt: skip
    step_lists(Rprop, params, grads, states, settings)
