"""Losses of similarity, order and counts.

Every loss takes `reduction`: "mean" (the default), "sum", or "none" for one value per element or row.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core, operator
from .._typing import Any
from ._arguments import reduction_code
from .activation import logsigmoid

_hinge_embedding_loss = operator("hinge_embedding_loss")
_margin_ranking_loss = operator("margin_ranking_loss")
_cosine_embedding_loss = operator("cosine_embedding_loss")
_triplet_margin_loss = operator("triplet_margin_loss")
_poisson_nll_loss = operator("poisson_nll_loss")
_soft_margin_loss = operator("soft_margin_loss")
_multi_margin_loss = operator("multi_margin_loss")
_multilabel_margin_loss = operator("multilabel_margin_loss")


def _reduced(losses: Tensor, code: int) -> Tensor:
    return losses if code == 0 else losses.mean() if code == 1 else losses.sum()


@overridable
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`input` where `target` is 1, max(0, margin - input) where it is -1."""
    code = reduction_code("hinge_embedding_loss", reduction, size_average, reduce)
    return _hinge_embedding_loss(input, target, margin, code)


@overridable
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target (input1 - input2)): `input1` should be larger (target 1) or smaller (-1).

    Raises:
        RuntimeError: the three tensors have different numbers of dimensions.
    """
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            f"margin_ranking_loss(input1, input2, target): shapes {tuple(input1.shape)}, {tuple(input2.shape)} and "
            f"{tuple(target.shape)} have different numbers of dimensions"
        )
    code = reduction_code("margin_ranking_loss", reduction, size_average, reduce)
    return _margin_ranking_loss(input1, input2, target, margin, code)


@overridable
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos of the angle between rows of (N, D) where `target` (N) is 1, max(0, cos - margin) where it is -1."""
    code = reduction_code("cosine_embedding_loss", reduction, size_average, reduce)
    return _cosine_embedding_loss(input1, input2, target, margin, code)


@overridable
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + |anchor - positive| - |anchor - negative|), p-norms over the last dimension.

    `eps` is added to the differences. With `swap` the distance of positive and negative counts where it is
    smaller (Balntas et al. 2016).
    """
    code = reduction_code("triplet_margin_loss", reduction, size_average, reduce)
    return _triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


@overridable
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute :func:`triplet_margin_loss` with a custom distance function. Default: the norm of order 2."""
    name = "triplet_margin_with_distance_loss"
    code = reduction_code(name, reduction)
    if margin <= 0:
        raise ValueError(f"{name}(margin): got {margin}, needs a positive number")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            f"{name}(anchor, positive, negative): shapes {tuple(anchor.shape)}, {tuple(positive.shape)} and "
            f"{tuple(negative.shape)} differ in rank"
        )
    distance = _default_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = core.minimum(far, distance(positive, negative))
    return _reduced((margin + near - far).clamp(min=0), code)


def _default_distance(a: Tensor, b: Tensor) -> Tensor:
    return (a - b + 1e-6).norm(2, -1)


@overridable
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of counts `target` under Poisson distributions.

    Their means are exp(input), or `input` without `log_input`, to whose logarithm `eps` is added. `full` adds
    Stirling's approximation of the part that depends on the target alone.
    """
    code = reduction_code("poisson_nll_loss", reduction, size_average, reduce)
    return _poisson_nll_loss(input, target, log_input, full, eps, code)


@overridable
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of `target` under normal distributions of mean `input` and variance `var`.

    `var` is a number, of the input's shape, or lacks its last dimension or has 1 there; it counts as at least
    `eps`. `full` adds the constant log(2 pi) / 2. (Nix and Weigend 1994)

    Raises:
        ValueError: a variance is negative, or the shapes do not fit.
    """
    name = "gaussian_nll_loss"
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError(f"{name}(var): got {var}, variances cannot be negative")
        var = core.full_like(input, float(var))
    elif bool((var < 0).any()):
        raise ValueError(f"{name}(var): variances cannot be negative")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif not _differs_in_one_of_size_one(var, input):
            raise ValueError(f"{name}(var): shape {tuple(var.shape)} does not go with {tuple(input.shape)}")
    code = reduction_code(name, reduction)
    var = var.clone()
    with core.no_grad():
        var.clamp_(min=eps)  # without a kink in the gradient
    losses = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return _reduced(losses, code)


def _differs_in_one_of_size_one(var: Tensor, input: Tensor) -> bool:
    if var.dim() != input.dim():
        return False
    others = [(a, b) for a, b in zip(var.shape, input.shape, strict=True) if a != b]
    return len(others) == 1 and others[0][0] == 1


@overridable
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target · input)) of targets 1 and -1."""
    code = reduction_code("soft_margin_loss", reduction, size_average, reduce)
    return _soft_margin_loss(input, target, code)


@overridable
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over the wrong classes of max(0, margin - input[target] + input[class])^p, divided by their number C.

    Args:
        input: (N, C) or (C).
        target: int64 (N) or ().
        p: 1 or 2.
        weight: (C) factors for the target classes.
    """
    code = reduction_code("multi_margin_loss", reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss(p): got {p}, needs 1 or 2")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"multi_margin_loss(weight): got {weight.dim()} dimensions, needs one")
    return _multi_margin_loss(input, target, p, margin, weight, code)


@overridable
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the sum over target classes and others of max(0, 1 - input[target class] + input[other]), divided by C.

    Args:
        input: (N, C) or (C).
        target: int64, of the input's shape: the target classes of each row, ended by -1.
    """
    code = reduction_code("multilabel_margin_loss", reduction, size_average, reduce)
    return _multilabel_margin_loss(input, target, code)


@overridable
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross-entropy of sigmoid(input) (..., C), times `weight` (C), averaged over the classes."""
    code = reduction_code("multilabel_soft_margin_loss", reduction, size_average, reduce)
    losses: Any = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return _reduced(losses.sum(-1) / input.shape[-1], code)
