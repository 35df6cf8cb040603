"""Gradient clipping."""

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
    """Return the norm of the elements of all tensors, as if the tensors were concatenated to one vector.

    Args:
        tensors: a tensor or an iterable of tensors.
        norm_type: the order of the norm, possibly infinity.
        error_if_nonfinite: whether to raise an error if the norm is infinite or NaN. The check waits for the
            device.
        foreach: accepted and ignored.

    Shape:
        - Tensors: (*), any shapes.
        - Output: ().

    Raises:
        RuntimeError: the norm is infinite or NaN, and `error_if_nonfinite` is set.

    Example:
        >>> nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        tensor(5.)
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
                "hint: pass error_if_nonfinite=False to disable this check"
            )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients in place by ``max_norm / (total_norm + 1e-6)`` if this factor is less than 1.

    Args:
        parameters: a tensor or an iterable of tensors, whose gradients are scaled.
        max_norm: the upper limit of the norm.
        total_norm: the norm of the gradients, as computed by :func:`get_total_norm`.
        foreach: accepted and ignored.

    Shape:
        - Parameters: (*), any shapes; `total_norm`: ().

    Example:
        >>> w = torch.zeros(2, requires_grad=True)
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> nn.utils.clip_grads_with_norm_(w, max_norm=1.0, total_norm=nn.utils.get_total_norm(w.grad))
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    with core.no_grad():
        # Always multiply, even by one, because testing the factor would synchronize with the device.
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
    """Scale gradients in place so that their total norm is at most `max_norm`.

    Args:
        parameters: a tensor or an iterable of tensors; tensors without a gradient are ignored.
        max_norm: the upper limit of the norm.
        norm_type: the order of the norm, possibly infinity.
        error_if_nonfinite: whether to raise an error if the norm is infinite or NaN. The check waits for the
            device.
        foreach: accepted and ignored.

    Shape:
        - Parameters: (*), any shapes.
        - Output: (), the norm before scaling.

    Raises:
        RuntimeError: the norm is infinite or NaN, and `error_if_nonfinite` is set.

    Example:
        >>> w = torch.zeros(2, requires_grad=True)
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> nn.utils.clip_grad_norm_([w], max_norm=1.0)
        tensor(5.)
        >>> w.grad
        tensor([0.6000, 0.8000])
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
    """Deprecated alias of :func:`clip_grad_norm_`.

    Shape:
        - Parameters: (*), any shapes.
        - Output: (), the norm before scaling.

    Example:
        >>> w = torch.zeros(2, requires_grad=True)
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> nn.utils.clip_grad_norm(w, 10.0)
        tensor(5.)
    """
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamp the gradients in place to the range from -`clip_value` to `clip_value`.

    Args:
        parameters: a tensor or an iterable of tensors; tensors without a gradient are ignored.
        clip_value: the upper limit of the magnitude of each element.
        foreach: accepted and ignored.

    Shape:
        - Parameters: (*), any shapes.

    Example:
        >>> w = torch.zeros(2, requires_grad=True)
        >>> w.grad = torch.tensor([-3.0, 0.5])
        >>> nn.utils.clip_grad_value_(w, 1.0)
        >>> w.grad
        tensor([-1.0000,  0.5000])
    """
    limit = float(clip_value)
    with core.no_grad():
        for parameter in _with_grad(parameters):
            parameter.grad.clamp_(min=-limit, max=limit)
