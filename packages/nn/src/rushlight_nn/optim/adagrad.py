"""Adagrad."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._counted import CountedSteps, number
from ._lists import check_lists, step_lists
from .optimizer import check_settings, refuse

_adagrad_step_ = operator("_adagrad_step_")
_sparse_values = operator("_sparse_values")
_with_sparse_values = operator("_with_sparse_values")


class Adagrad(CountedSteps):
    """Adagrad: gradients divided by the square root of the sum of all squared gradients (Duchi et al. 2011).

    Each step is ``p = p - lr · gradient / (sqrt(sum) + eps)``, where sum is the sum of the squared gradients of all steps. A
    sparse gradient updates only the elements that it contains.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        lr_decay: the learning rate of step t is lr / (1 + (t - 1) · lr_decay).
        weight_decay: the L2 penalty; weight_decay · parameter is added to the gradient; not supported with sparse gradients.
        initial_accumulator_value: the initial value of the sum of the squared gradients.
        eps: added to the denominator for numerical stability.
        maximize: maximise the objective instead of minimising it.
        foreach, fused: accepted and ignored; a step always calls one operator for all parameters.
        differentiable: not supported.

    Shape:
        - Parameters: (*), any shape. Each tensor in the state is a scalar or has the shape of its parameter.

    Raises:
        ValueError: an argument is out of range.
        RuntimeError: `step` finds a sparse gradient although `weight_decay` is not zero.

    Example:
        >>> w = torch.tensor([1.0, 10.0], requires_grad=True)
        >>> optimizer = torch.optim.Adagrad([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()  # the first step has the length lr for every element
        tensor([0.9000, 9.9000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        refuse("Adagrad", differentiable=differentiable)
        check_settings(
            "Adagrad",
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:  # the state exists before the first step
            for param in group["params"]:
                self._begin(group, param, self.state[param])

    def share_memory(self) -> None:
        """Move the state to shared memory, so that other processes can use it."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _entries(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = number(0, param)
        state["sum"] = core.full_like(param, group["initial_accumulator_value"])

    def _call(self, group: dict[str, Any], *lists: list[Tensor]) -> None:
        _adagrad_step_(
            *lists,
            lr=float(group["lr"]),
            lr_decay=group["lr_decay"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )

    def _advance(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        sparse = [grad.is_sparse for grad in grads]
        if not any(sparse):
            super()._advance(group, params, grads, states)
            return
        self._check_all(group, params, grads, states)
        dense = [i for i, is_sparse in enumerate(sparse) if not is_sparse]
        if dense:
            super()._advance(
                group, [params[i] for i in dense], [grads[i] for i in dense], [states[i] for i in dense]
            )
        for param, grad, own, is_sparse in zip(params, grads, states, sparse, strict=True):
            if is_sparse:
                _update_sparse(group, param, grad, own)

    def _check_sparse(self, group: dict[str, Any]) -> None:
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of :class:`Adagrad` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        state_sums: sums of squared gradients.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`Adagrad`; `foreach`, `fused` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        RuntimeError: a gradient is sparse and `weight_decay` is not zero.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import adagrad
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> adagrad(
        ...     params, grads, [torch.zeros(1)], [torch.tensor(0.0)],
        ...     lr=0.1, weight_decay=0.0, lr_decay=0.0, eps=1e-10, maximize=False,
        ... )
        >>> params
        [tensor([0.9000])]
    """
    refuse(
        "adagrad",
        differentiable=differentiable,
        grad_scale=grad_scale is not None,
        found_inf=found_inf is not None,
    )
    check_lists("adagrad", params, state_steps)
    if weight_decay and any(grad.is_sparse for grad in grads):
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    settings = {
        "lr": lr,
        "weight_decay": weight_decay,
        "lr_decay": lr_decay,
        "eps": eps,
        "maximize": maximize,
    }
    step_lists(Adagrad, params, grads, {"step": state_steps, "sum": state_sums}, settings)


def _update_sparse(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    """Update only those elements of a parameter that the sparse gradient contains."""
    state["step"] += 1
    rate = float(group["lr"]) / (1 + (state["step"].double() - 1) * group["lr_decay"])
    grad = grad.coalesce()
    values = _sparse_values(grad)
    if group["maximize"]:
        values = -values
    total = state["sum"]
    total.add_(_with_sparse_values(values * values, grad))
    root = _sparse_values(total.sparse_mask(grad)).sqrt_().add_(group["eps"])
    param.add_(_with_sparse_values(values / root * -rate, grad))
