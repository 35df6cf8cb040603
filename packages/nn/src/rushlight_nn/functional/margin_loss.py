"""Losses for similarity, ranking and counts.

Every loss has an argument `reduction`: "mean" (the default), "sum", or "none" for one value per element or row.
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
    """Return the input where the target is 1, and ``max(0, margin - input)`` where the target is -1.

    Args:
        input: distances.
        target: the labels, 1 or -1.
        margin: the distance above which the loss of dissimilar pairs is zero.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.

    Example:
        >>> F.hinge_embedding_loss(torch.tensor([0.3, 0.3]), torch.tensor([1.0, -1.0]), reduction="none")
        tensor([0.3000, 0.7000])
    """
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
    """Return ``max(0, margin - target · (input1 - input2))``.

    Args:
        input1: the values that should be larger than `input2` where the target is 1, and smaller where the target is -1.
        input2: the values with which `input1` is compared.
        target: the labels, 1 or -1.
        margin: the smallest value of target · (input1 - input2) for which the loss is zero.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Inputs and target: (N) or (), the same number of dimensions.
        - Output: (), or (N) with `reduction` "none".

    Raises:
        RuntimeError: the tensors have different numbers of dimensions.
        ValueError: `reduction` is unknown.

    Example:
        >>> a, b = torch.tensor([1.0, 1.0]), torch.tensor([3.0, 3.0])
        >>> F.margin_ranking_loss(a, b, torch.tensor([1.0, -1.0]), reduction="none")
        tensor([2., 0.])
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
    """Return ``1 - cos`` where the target is 1, and ``max(0, cos - margin)`` where the target is -1.

    Args:
        input1, input2: the vectors whose cosine similarity is computed.
        target: the labels, 1 or -1.
        margin: the cosine below which the loss of dissimilar pairs is zero.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per pair.

    Shape:
        - Inputs: (N, D) or (D).
        - Target: (N) or ().
        - Output: (), or (N) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> F.cosine_embedding_loss(x, x, torch.tensor([1, -1]), reduction="none")
        tensor([0., 1.])
    """
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
    """Return ``max(0, margin + d(anchor, positive) - d(anchor, negative))`` (Balntas et al. 2016).

    The distance d(x, y) is the p-norm of x - y + eps over the last dimension.

    Args:
        anchor, positive, negative: the vectors.
        margin: the smallest difference d(anchor, negative) - d(anchor, positive) for which the loss is zero.
        p: order of the norm.
        eps: added to the differences.
        swap: use the distance between positive and negative if it is smaller than the distance between anchor and negative.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per triplet.

    Shape:
        - Inputs: (N, D) or (D).
        - Output: (), or (N) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.

    Example:
        >>> anchor, positive, negative = (torch.tensor([[x]]) for x in (0.0, 1.0, 1.5))
        >>> F.triplet_margin_loss(anchor, positive, negative)
        tensor(0.5000)
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
    """Return the :func:`triplet_margin_loss` with the distance that `distance_function` computes.

    Args:
        anchor, positive, negative: the samples.
        distance_function: a function of two tensors that returns the distances between them. The default is the Euclidean
            distance.
        margin: the smallest difference d(anchor, negative) - d(anchor, positive) for which the loss is zero.
        swap: use the distance between positive and negative if it is smaller than the distance between anchor and negative.
        reduction: "mean", "sum", or "none" for one value per triplet.

    Shape:
        - Inputs: (N, *), in a shape that `distance_function` accepts.
        - Output: (), or (N) with `reduction` "none".

    Raises:
        ValueError: `margin` is not positive, or `reduction` is unknown.
        RuntimeError: the tensors have different numbers of dimensions.

    Example:
        >>> anchor, positive, negative = (torch.tensor([x]) for x in ([1.0, 0.0], [1.0, 0.0], [0.0, 1.0]))
        >>> far = lambda x, y: 1 - F.cosine_similarity(x, y)
        >>> F.triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=far)
        tensor(0.)
    """
    name = "triplet_margin_with_distance_loss"
    code = reduction_code(name, reduction)
    if margin <= 0:
        raise ValueError(f"{name}(margin): got {margin}, needs a positive number")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            f"{name}(anchor, positive, negative): shapes {tuple(anchor.shape)}, {tuple(positive.shape)} and "
            f"{tuple(negative.shape)} have different numbers of dimensions"
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
    """Return the negative log-likelihood of counts under Poisson distributions.

    Args:
        input: the logarithms of the means, or the means if `log_input` is False.
        target: the counts.
        log_input: if True, the loss is ``exp(input) - target · input``, otherwise ``input - target · log(input + eps)``.
        full: add Stirling's approximation of log(target!) where the target is above 1.
        size_average, reduce: deprecated; use `reduction`.
        eps: added to the mean in the logarithm.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.

    Example:
        >>> F.poisson_nll_loss(torch.tensor([2.0]), torch.tensor([3.0]), log_input=False)  # 2 - 3 log 2
        tensor(-0.0794)
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
    """Return the negative log-likelihood of targets under normal distributions (Nix and Weigend 1994).

    The loss is ``(log(var) + (input - target)² / var) / 2``.

    Args:
        input: the means.
        target: the targets.
        var: the variances.
        full: add the constant log(2 pi) / 2.
        eps: lower limit of the variances. Gradients pass through this limit unchanged.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (N, *) or (*).
        - `var`: a number, or a tensor of the input's shape. One dimension of this tensor may have size 1 instead, or the
          last dimension may be missing.
        - Output: (), or the input's shape with `reduction` "none".

    Raises:
        ValueError: a variance is negative, the shapes do not match, or `reduction` is unknown.

    Example:
        >>> F.gaussian_nll_loss(torch.tensor([1.0]), torch.tensor([3.0]), 2.0)  # (log 2 + 4 / 2) / 2
        tensor(1.3466)
    """
    name = "gaussian_nll_loss"
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError(f"{name}(var): got {var}, needs a variance of at least 0")
        var = core.full_like(input, float(var))
    elif bool((var < 0).any()):
        raise ValueError(f"{name}(var): got a negative variance, needs variances of at least 0")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif not _differs_in_one_of_size_one(var, input):
            raise ValueError(
                f"{name}(var): got shape {tuple(var.shape)}, which does not fit the input's shape {tuple(input.shape)}"
            )
    code = reduction_code(name, reduction)
    var = var.clone()
    with core.no_grad():
        var.clamp_(min=eps)  # not recorded in the graph, so that the limit does not affect the gradient
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
    """Return ``log(1 + exp(-target · input))``, for targets that are 1 or -1.

    Args:
        input: the scores.
        target: the labels, 1 or -1.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.

    Example:
        >>> F.soft_margin_loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, -1.0]), reduction="none")
        tensor([0.6931, 2.1269])
    """
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
    """Return the sum over wrong classes of ``max(0, margin - input[target] + input[class])^p``, divided by C.

    Args:
        input: the scores.
        target: the classes, int64.
        p: 1 or 2.
        margin: the difference of scores above which the loss is zero.
        weight: a factor for each target class.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per sample.

    Shape:
        - Input: (N, C) or (C).
        - Target: (N) or ().
        - `weight`: (C).
        - Output: (), or the target's shape with `reduction` "none".

    Raises:
        ValueError: `p` is neither 1 nor 2, `weight` does not have one dimension, or `reduction` is unknown.

    Example:
        >>> F.multi_margin_loss(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([3]))  # (0.3 + 0.4 + 0.6) / 4
        tensor(0.3250)
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
    """Return the sum of ``max(0, 1 - input[target] + input[other]) / C`` over pairs of a target class and a non-target
    class.

    Args:
        input: the scores.
        target: the target classes of each row, followed by -1 if there are fewer than C target classes; int64.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per sample.

    Shape:
        - Input and target: (N, C) or (C).
        - Output: (), or (N) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.

    Example:
        >>> F.multilabel_margin_loss(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([[3, 0, -1, 1]]))  # classes 3 and 0
        tensor(0.8500)
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
    """Return the binary cross entropy of sigmoid(input), averaged over the classes.

    Args:
        input: the scores.
        target: the labels, 0 or 1.
        weight: a factor for each class.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per sample.

    Shape:
        - Input and target: (*, C).
        - `weight`: (C).
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.

    Example:
        >>> F.multilabel_soft_margin_loss(torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(1.4100)
    """
    code = reduction_code("multilabel_soft_margin_loss", reduction, size_average, reduce)
    losses: Any = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return _reduced(losses.sum(-1) / input.shape[-1], code)
