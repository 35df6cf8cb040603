"""Computations of weight normalisation and spectral normalisation, which hooks and parametrizations share."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from ..functional import normalize


def norm_except(weight: Tensor, dim: int | None) -> Tensor:
    """Return the norm over all dimensions except `dim`; the reduced dimensions are kept with size 1.

    If `dim` is None or -1, return the norm of the whole tensor as a 0-d tensor.
    """
    if dim is None or dim == -1:
        return core.linalg.vector_norm(weight)
    others = [d for d in range(weight.dim()) if d != dim % weight.dim()]
    if not others:
        return weight.abs()
    return core.linalg.vector_norm(weight, dim=others, keepdim=True)


def rows_of(weight: Tensor, dim: int) -> Tensor:
    """Return the weight as a matrix whose row i contains the elements at index i of dimension `dim`."""
    return weight.movedim(dim, 0).flatten(1)


def power_iteration(
    matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float, v_first: bool = False
) -> tuple[Tensor, Tensor]:
    """Return estimates of the singular vectors for the largest singular value, without recording gradients."""
    with core.no_grad():
        adjoint = matrix.mT.conj() if matrix.is_complex() else matrix.mT
        for _ in range(count):
            if v_first:
                v = normalize(core.mv(adjoint, u), dim=0, eps=eps)
            u = normalize(core.mv(matrix, v), dim=0, eps=eps)
            if not v_first:
                v = normalize(core.mv(adjoint, u), dim=0, eps=eps)
    return u, v
