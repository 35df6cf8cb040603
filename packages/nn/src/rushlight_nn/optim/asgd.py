"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._each import EachParameter, counter
from .optimizer import check_settings, refuse


class ASGD(EachParameter):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992).

    The average of a parameter is stored in `optimizer.state[parameter]["ax"]`; the parameter itself is not averaged.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        lambd: the decay rate of the parameters and of the learning rate.
        alpha: the exponent of the decay of the learning rate.
        t0: the step at which averaging starts.
        weight_decay: weight_decay · parameter is added to the gradient.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted and ignored; parameters are updated one after the other.
        capturable, differentiable: not supported.

    Shape:
        - Parameters: (*), any shape. The tensors of their state have the same shape.

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
