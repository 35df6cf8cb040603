"""Adagrad."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._each import EachParameter, counter
from .optimizer import check_settings, refuse

_sparse_values = operator("_sparse_values")
_with_sparse_values = operator("_with_sparse_values")


class Adagrad(EachParameter):
    """Adagrad: steps divided by the root of the sum of all squared gradients (Duchi et al. 2011).

    Each step is ``p = p - lr · gradient / (sqrt(sum) + eps)``. A sparse gradient updates only the elements that it contains.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        lr_decay: the learning rate of step t is lr / (1 + (t - 1) · lr_decay).
        weight_decay: weight_decay · parameter is added to the gradient; not supported with sparse gradients.
        initial_accumulator_value: the initial value of the sum.
        eps: added to the root.
        maximize: maximise the objective instead of minimising it.
        foreach, fused: accepted and ignored; parameters are updated one after the other.
        differentiable: not supported.

    Shape:
        - Parameters: (*), any shape. The tensors of their state have the same shape.

    Raises:
        ValueError: an argument is out of range.
        RuntimeError: a gradient is sparse and `weight_decay` is not zero (raised by a step).

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
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
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

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = counter()
        state["sum"] = core.full_like(param, group["initial_accumulator_value"])

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        rate = float(group["lr"]) / (1 + (float(state["step"]) - 1) * group["lr_decay"])
        if grad.is_sparse:
            return _update_sparse(param, grad.coalesce(), state["sum"], rate, group["eps"])
        total = state["sum"].addcmul_(grad, grad)
        param.addcdiv_(grad, total.sqrt().add_(group["eps"]), value=-rate)
        return None

    def _check_sparse(self, group: dict[str, Any]) -> None:
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")


def _update_sparse(param: Tensor, grad: Tensor, total: Tensor, rate: float, eps: float) -> None:
    """Update only those elements of the parameter for which the gradient has values."""
    values = _sparse_values(grad)
    total.add_(_with_sparse_values(values * values, grad))
    root = _sparse_values(total.sparse_mask(grad)).sqrt_().add_(eps)
    param.add_(_with_sparse_values(values / root, grad), alpha=-rate)
