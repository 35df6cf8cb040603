"""Functions that group parameters into lists, so that one call of a fused operator updates a whole list."""

from __future__ import annotations

import rushlight_core as core

from .._typing import Any


def batches(params: list[Any]) -> list[tuple[list[Any], list[Any]]]:
    """For each device and dtype, return the list of parameters that have a gradient, and the list of their gradients.

    The lists are not cached between steps. Parameters may be replaced, moved or converted between two steps, and
    creating the lists again costs less than checking for such changes.
    """
    with_grad: list[Any] = []
    grads: list[Any] = []
    device = dtype = None
    alike = True
    for param in params:
        grad = param.grad
        if grad is not None:
            if not grads:
                device, dtype = param.device, param.dtype
            elif param.dtype is not dtype or param.device != device:
                alike = False
            with_grad.append(param)
            grads.append(grad)
    if alike:
        return [(with_grad, grads)] if grads else []
    sorted_out: dict[Any, tuple[list[Any], list[Any]]] = {}
    for param, grad in zip(with_grad, grads, strict=True):
        entry = sorted_out.setdefault((param.device, param.dtype), ([], []))
        entry[0].append(param)
        entry[1].append(grad)
    return list(sorted_out.values())


def as_real(*lists: list[Any]) -> tuple[list[Any], ...]:
    """Return lists of tensors, in which complex tensors are replaced by real views. All tensors must have the same dtype."""
    if not lists[0][0].is_complex():
        return lists
    return tuple([core.view_as_real(t) for t in tensors] for tensors in lists)
