"""Selection of the parameters that one call of a fused operator updates."""

from __future__ import annotations

import rushlight_core as core

from .._typing import Any


def batches(params: list[Any]) -> list[tuple[list[Any], list[Any]]]:
    """Return the parameters that have a gradient, and their gradients, as one pair of lists per device and dtype.

    Nothing is cached between steps: parameters may be replaced, moved or converted between two steps, and examining them
    again costs less than determining whether that is necessary.
    """
    with_grad: list[Any] = []
    grads: list[Any] = []
    kinds: set[Any] = set()
    for param in params:
        grad = param.grad
        if grad is not None:
            with_grad.append(param)
            grads.append(grad)
            kinds.add((param.device, param.dtype))
    if len(kinds) <= 1:
        return [(with_grad, grads)] if grads else []
    sorted_out: dict[Any, tuple[list[Any], list[Any]]] = {}
    for param, grad in zip(with_grad, grads, strict=True):
        entry = sorted_out.setdefault((param.device, param.dtype), ([], []))
        entry[0].append(param)
        entry[1].append(grad)
    return list(sorted_out.values())


def as_real(*lists: list[Any]) -> tuple[list[Any], ...]:
    """Return lists of tensors of one dtype, with complex tensors viewed as pairs of real numbers."""
    if not lists[0][0].is_complex():
        return lists
    return tuple([core.view_as_real(t) for t in tensors] for tensors in lists)
