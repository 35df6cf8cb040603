"""NAdam."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._each import EachParameter, check_betas, counter
from .optimizer import check_settings, refuse


class NAdam(EachParameter):
    """NAdam: Adam with Nesterov's momentum (Dozat 2016).

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the root.
        weight_decay: weight_decay · parameter is added to the gradient; see `decoupled_weight_decay`.
        momentum_decay: the rate at which the momentum approaches the first of `betas`.
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
        >>> optimizer = torch.optim.NAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8944, 9.8944])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse("NAdam", capturable=capturable, differentiable=differentiable)
        check_settings("NAdam", lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        check_betas("NAdam", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
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
        state["mu_product"] = core.ones((), dtype=core.float32)
        state["exp_avg"] = core.zeros_like(param)
        state["exp_avg_sq"] = core.zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        (beta1, beta2), lr, step = group["betas"], float(group["lr"]), float(state["step"])
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        decay = group["momentum_decay"]
        now = beta1 * (1 - 0.5 * 0.96 ** (step * decay))
        later = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
        state["mu_product"] *= now
        product = float(state["mu_product"])
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = square.div(1 - beta2**step).sqrt_().add_(group["eps"])
        param.addcdiv_(grad, root, value=-lr * (1 - now) / (1 - product))
        param.addcdiv_(mean, root, value=-lr * later / (1 - product * later))

    def _adopt(self, value: Any, param: Any, key: str) -> Any:
        return super()._adopt(
            value, param, "step" if key == "mu_product" else key
        )  # float32 whatever param is
