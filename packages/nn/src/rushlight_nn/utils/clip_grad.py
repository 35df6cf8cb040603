"""Keeping gradients small."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any


def _with_grad(parameters: Tensor | Iterable[Tensor]) -> list[Any]:
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in parameters if p.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm, of order `norm_type`, of all elements of `tensors` taken together, as a 0-d tensor.

    Raises:
        RuntimeError: it is infinite or NaN, and `error_if_nonfinite`. (Finding out waits for the device.)
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return core.tensor(0.0)
    order, device = float(norm_type), tensors[0].device
    with core.no_grad():
        total = core.stack([t.norm(order).to(device) for t in tensors]).norm(order)
        if error_if_nonfinite and not bool(core.isfinite(total)):
            raise RuntimeError(
                f"get_total_norm: the norm of order {order} of the tensors is {float(total)}\n"
                "hint: error_if_nonfinite=False goes on regardless"
            )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients of `parameters` in place by max_norm / total_norm, where that is below one."""
    with core.no_grad():
        # Always multiplied, also by one: asking whether it is needed would wait for the device.
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for parameter in _with_grad(parameters):
            parameter.grad.mul_(factor.to(parameter.grad.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of `parameters` in place so that their norm, taken together, is at most `max_norm`.

    Args:
        parameters: a tensor or several; those without a gradient are left out.
        max_norm: the largest norm that stays.
        norm_type: the order of the norm, possibly infinite.
        error_if_nonfinite: raise RuntimeError if the norm is infinite or NaN, instead of going on.
        foreach: accepted and ignored.

    Returns:
        the norm before, a 0-d tensor.
    """
    chosen = _with_grad(parameters)
    total = get_total_norm([p.grad for p in chosen], norm_type, error_if_nonfinite)
    clip_grads_with_norm_(chosen, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The name that :func:`clip_grad_norm_` once had."""
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limit every element of the gradients of `parameters`, in place, to ±`clip_value`."""
    limit = float(clip_value)
    with core.no_grad():
        for parameter in _with_grad(parameters):
            parameter.grad.clamp_(min=-limit, max=limit)
