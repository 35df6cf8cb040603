"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._each import EachParameter, counter
from .optimizer import check_settings, refuse


class ASGD(EachParameter):
    """Gradient descent whose iterates are averaged, in `state[parameter]["ax"]` (Polyak and Juditsky 1992).

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        lambd: how fast parameters decay, and the rate with them.
        alpha: power of the rate's decay.
        t0: the step at which averaging starts.
        weight_decay: this times the parameter is added to the gradient.
        maximize: go up instead of down.
        foreach: accepted; parameters are updated one after the other.
        capturable, differentiable: not supported.

    Raises:
        ValueError: a setting is out of range.
    """

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
        refuse("ASGD", capturable=capturable, differentiable=differentiable)
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

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = counter()
        state["eta"] = core.tensor(float(group["lr"]), dtype=core.float32)
        state["mu"] = core.ones((), dtype=core.float32)
        state["ax"] = core.zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        rate, share, step = float(state["eta"]), float(state["mu"]), float(state["step"])
        lambd, lr = group["lambd"], float(group["lr"])
        param.mul_(1 - lambd * rate).add_(grad, alpha=-rate)
        average = state["ax"]
        if share == 1:
            average.copy_(param)
        else:
            average.add_((param - average).mul_(share))
        state["eta"] = core.tensor(lr / (1 + lambd * lr * step) ** group["alpha"], dtype=core.float32)
        state["mu"] = core.tensor(1 / max(1.0, step - group["t0"]), dtype=core.float32)

    def _adopt(self, value: Any, param: Any, key: str) -> Any:
        return super()._adopt(
            value, param, "step" if key in ("eta", "mu") else key
        )  # float32 whatever param is
