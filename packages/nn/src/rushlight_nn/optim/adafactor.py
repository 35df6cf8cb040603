"""Adafactor."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._each import EachParameter
from .optimizer import check_settings


class Adafactor(EachParameter):
    """Adafactor: divides gradients by their root mean square, with little memory (Shazeer and Stern 2018).

    For a matrix, only the means of the squared gradient over rows and over columns are stored. The step size
    is relative to the root mean square of the parameter.

    Args:
        params: real tensors or parameter groups.
        lr: the largest relative step size. Step t has the relative step size min(lr, 1 / sqrt(t)).
        beta2_decay: the weight of the squared gradient of step t in the running means is t^beta2_decay.
        eps: a pair of lower limits: the first for the root mean square of a gradient, the second for the root mean square
            of a parameter. If the first number is None, the dtype's machine epsilon is used.
        d: the largest root mean square of an update; larger updates are scaled down.
        weight_decay: the decoupled weight decay; lr · weight_decay · parameter is subtracted from the parameter.
        foreach: accepted and ignored.
        maximize: maximise the objective instead of minimising it.

    Raises:
        ValueError: an argument is out of range.
        RuntimeError: a parameter is complex.

    Example:
        >>> model = nn.Linear(1000, 500)
        >>> optimizer = torch.optim.Adafactor(model.parameters())
        >>> model(torch.randn(8, 1000)).square().mean().backward()
        >>> optimizer.step()
        >>> {key: tuple(value.shape) for key, value in optimizer.state[model.weight].items()}
        {'step': (), 'row_var': (500, 1), 'col_var': (1, 1000)}
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_settings("Adafactor", lr=lr, weight_decay=weight_decay, eps=min(eps[0] or 0.0, eps[1]))
        if not beta2_decay <= 0.0:
            raise ValueError(f"Adafactor(beta2_decay): got {beta2_decay}, needs a number of at most 0")
        if not d >= 1.0:
            raise ValueError(f"Adafactor(d): got {d}, needs a number of at least 1")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        if any(param.is_complex() for param in self.param_groups[-1]["params"]):
            self.param_groups.pop()
            raise RuntimeError("Adafactor(params): got a complex parameter, needs real parameters")

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = core.zeros(
            (), dtype=core.float32
        )  # on the CPU, so that reading it does not wait for a device
        if param.dim() > 1:
            for key in ("row_var", "col_var"):
                state[key] = param.new_zeros(self._shape_in_state(key, param.shape))
        else:
            state["variance"] = core.zeros_like(param)

    def _check(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        super()._check(group, param, grad, state)
        if param.device.type != "cpu" and core.devices.is_current_stream_capturing(param.device):
            raise RuntimeError(
                "Adafactor.step(): cannot be recorded in a graph: updates depend on the step count, which is on the CPU\n"
                "hint: use another optimizer, such as Adam, whose steps can be recorded"
            )

    def _shape_in_state(self, key: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        if key == "row_var":
            return (*shape[:-1], 1)
        return (*shape[:-2], 1, shape[-1]) if key == "col_var" else shape

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        least_grad, least_size = group["eps"]
        least_grad = core.finfo(param.dtype).eps if least_grad is None else least_grad
        step, lr = float(state["step"]), float(group["lr"])
        weight = step ** group["beta2_decay"]
        length = max(least_size, _root_mean_square(param)) * min(lr, step**-0.5)
        if group["weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        square = grad * grad
        if param.dim() > 1:
            rows = state["row_var"].lerp_(square.mean(-1, keepdim=True), weight)
            columns = state["col_var"].lerp_(square.mean(-2, keepdim=True), weight)
            variance = (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=least_grad))
        else:
            variance = state["variance"].lerp_(square, weight).clone()
        update = variance.clamp_(min=least_grad * least_grad).rsqrt_().mul_(grad)
        param.add_(update, alpha=-length / max(1.0, _root_mean_square(update) / group["d"]))


def _root_mean_square(tensor: Tensor) -> float:
    if not tensor.numel():
        return 0.0
    return float(core.linalg.vector_norm(tensor)) / tensor.numel() ** 0.5
