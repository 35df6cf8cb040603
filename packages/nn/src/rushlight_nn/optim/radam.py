"""RAdam."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._each import EachParameter, check_betas, counter
from .optimizer import check_settings, refuse


class RAdam(EachParameter):
    """RAdam: Adam with plain momentum steps until the variance of its step length is small (Liu et al. 2020).

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the root.
        weight_decay: weight_decay · parameter is added to the gradient; see `decoupled_weight_decay`.
        decoupled_weight_decay: subtract lr · weight_decay · parameter from the parameter instead, as :class:`AdamW` does.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted and ignored; parameters are updated one after the other.
        capturable, differentiable: not supported.

    Shape:
        - Parameters: (*), any shape. The tensors of their state have the same shape.

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
        refuse("RAdam", capturable=capturable, differentiable=differentiable)
        check_settings("RAdam", lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas("RAdam", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _decays(self, group: dict[str, Any]) -> bool:
        return bool(group["weight_decay"]) and not group["decoupled_weight_decay"]

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = counter()
        state["exp_avg"] = core.zeros_like(param)
        state["exp_avg_sq"] = core.zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        (beta1, beta2), lr, step = group["betas"], float(group["lr"]), float(state["step"])
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        rate = lr / (1 - beta1**step)
        # The length of a plain average that is equivalent to the running mean of squares, in the limit and after this
        # step.
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * beta2**step / (1 - beta2**step)
        if length <= 5:
            param.add_(mean, alpha=-rate)
            return
        trust = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5
        root = square.sqrt().add_(group["eps"])
        param.addcdiv_(mean, root, value=-rate * trust * (1 - beta2**step) ** 0.5)
