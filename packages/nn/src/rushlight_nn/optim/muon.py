"""Muon."""

from __future__ import annotations

import math
from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._each import EachParameter
from .optimizer import check_settings

_ADJUSTMENTS = (None, "original", "match_rms_adamw")


class Muon(EachParameter):
    """Muon: each step is the momentum, with its singular values replaced by values near one (Jordan et al. 2024).

    Muon is for the matrices of hidden layers. Use another optimizer for embeddings, for the last layer, and for parameters
    that are not matrices.

    Args:
        params: matrices, or parameter groups of matrices.
        lr: learning rate.
        weight_decay: the decoupled weight decay; lr · weight_decay · parameter is subtracted from the parameter.
        momentum: the decay rate of the running mean of the gradient.
        nesterov: use Nesterov's momentum, ``momentum · mean + (1 - momentum) · gradient``, instead of the running mean.
        ns_coefficients: coefficients of x, x³ and x⁵ in the polynomial that is applied to the singular values.
        eps: lower limit of the norm by which a matrix is divided.
        ns_steps: number of iterations, below 100.
        adjust_lr_fn: the factor of the learning rate, which depends on the shape of the matrix. "original" and None select
            sqrt(max(1, rows / columns)). "match_rms_adamw" selects 0.2 · sqrt(max(rows, columns)), so that steps are
            about as large as the steps of AdamW.

    Shape:
        - Parameters: (rows, columns).

    Raises:
        ValueError: an argument is out of range, or a parameter is not a matrix.

    Example:
        >>> layer = nn.Linear(8, 4, bias=False)
        >>> optimizer = torch.optim.Muon(layer.parameters(), lr=0.02)
        >>> layer(torch.randn(16, 8)).square().mean().backward()
        >>> optimizer.step()
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_settings("Muon", lr=lr, weight_decay=weight_decay, momentum=momentum)
        if adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(
                f"Muon(adjust_lr_fn): got {adjust_lr_fn!r}, needs 'original' or 'match_rms_adamw'"
            )
        if len(ns_coefficients) != 3:
            raise ValueError(f"Muon(ns_coefficients): got {len(ns_coefficients)} numbers, needs 3")
        if not 0 <= ns_steps < 100:
            raise ValueError(f"Muon(ns_steps): got {ns_steps}, needs a number from 0 to 99")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        for position, param in enumerate(self.param_groups[-1]["params"]):
            if param.dim() != 2 or param.is_complex():
                self.param_groups.pop()
                raise ValueError(
                    f"Muon(params): item {position} is {param.dtype} of shape {tuple(param.shape)}, "
                    "needs a real matrix\nhint: give other parameters to an optimizer such as AdamW"
                )

    def _start(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["momentum_buffer"] = core.zeros_like(param)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        mean = state["momentum_buffer"].lerp_(grad, 1 - group["momentum"])
        update = grad.lerp(mean, group["momentum"]) if group["nesterov"] else mean
        update = orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr = float(group["lr"])
        rows, columns = param.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(rows, columns))
        else:
            factor = math.sqrt(max(1.0, rows / max(columns, 1)))
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(update, alpha=-lr * factor)


def orthogonalized(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Return `matrix` with its singular values replaced by values near one.

    The result is computed by iterating an odd polynomial (Newton-Schulz) in the dtype of the matrix, although bfloat16
    would be precise enough.
    """
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    result = matrix.mT if tall else matrix
    result = result / core.linalg.vector_norm(result).clamp(min=eps)
    for _ in range(steps):
        gram = result @ result.mT
        result = core.addmm(result, core.addmm(gram, gram, gram, beta=b, alpha=c), result, beta=a)
    return result.mT if tall else result
