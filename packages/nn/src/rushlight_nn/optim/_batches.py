"""Which parameters one call of a fused operator can update."""

from __future__ import annotations

import rushlight_core as core

from .._typing import Any


def batches(params: list[Any]) -> list[tuple[list[Any], list[Any]]]:
    """Return the parameters that have a gradient, with these, as one pair of lists per device and dtype.

    Nothing is remembered from step to step: parameters may be replaced, moved or converted between two steps, and
    looking at them again costs less than finding out whether one may skip it.
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
    """Lists of tensors of one dtype, complex ones as the pairs of real numbers that they are: a step treats both parts
    alike, as PyTorch's do."""
    if not lists[0][0].is_complex():
        return lists
    return tuple([core.view_as_real(t) for t in tensors] for tensors in lists)
