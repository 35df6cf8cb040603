"""Adamax."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._each import EachParameter, check_betas, counter
from .optimizer import check_settings, refuse


class Adamax(EachParameter):
    """Adamax: Adam with a decaying maximum of the gradient's magnitude instead of the mean square (Kingma and Ba 2015).

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        betas: the decay rates of the running mean of the gradient and of its largest magnitude.
        eps: added to the largest magnitude.
        weight_decay: weight_decay · parameter is added to the gradient.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted and ignored; parameters are updated one after the other.
        capturable, differentiable: not supported.

    Shape:
        - Parameters: (*), any shape. The tensors of their state have the same shape.

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
        refuse("Adamax", capturable=capturable, differentiable=differentiable)
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

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = counter()
        state["exp_avg"] = core.zeros_like(param)
        state["exp_inf"] = core.zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = state["exp_inf"]
        largest.copy_(core.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"])))
        param.addcdiv_(mean, largest, value=-float(group["lr"]) / (1 - beta1 ** float(state["step"])))
