"""Losses.

Every loss takes `reduction`: "mean" (the default), "sum", or "none" for one value per element.
"""

from __future__ import annotations

import warnings

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core, operator
from .._typing import Any
from ._arguments import reduction_code

_cross_entropy_loss = operator("cross_entropy_loss")
_nll_loss = operator("nll_loss")
_mse_loss = operator("mse_loss")
_l1_loss = operator("l1_loss")
_smooth_l1_loss = operator("smooth_l1_loss")
_huber_loss = operator("huber_loss")
_binary_cross_entropy = operator("binary_cross_entropy")
_binary_cross_entropy_with_logits = operator("binary_cross_entropy_with_logits")
_kl_div = operator("kl_div")
_ctc_loss = operator("ctc_loss")


@overridable
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the negative log-likelihood of `target` under softmax(`input`).

    Args:
        input: unnormalised log-probabilities (C), (N, C) or (N, C, d1, ...).
        target: int64 class numbers (), (N) or (N, d1, ...); or probabilities of the input's shape and dtype.
        weight: (C) factors for the classes. "mean" divides by the sum of the factors used.
        ignore_index: a class number that counts for nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: how much of each target is spread evenly over all classes, from 0 to 1.
    """
    code = reduction_code("cross_entropy", reduction, size_average, reduce)
    return _cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


@overridable
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative of `input`, log-probabilities (N, C) or (N, C, d1, ...), at the classes `target`, int64 or uint8.

    `weight` and `ignore_index` are as in :func:`cross_entropy`.
    """
    code = reduction_code("nll_loss", reduction, size_average, reduce)
    if target.dtype == core.uint8:
        target = target.to(core.int64)
    return _nll_loss(input, target, weight, code, ignore_index)


def _warn_of_sizes(function: str, input: Tensor, target: Tensor) -> None:
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}): {function} "
            "broadcasts them, which is rarely meant; give them the same shape",
            stacklevel=3,
        )


def _weighted(function: str, losses: Tensor, weight: Tensor, code: int) -> Tensor:
    """Reduce `losses`, each times its weight; the mean takes weights for frequencies."""
    if weight.shape != losses.shape:
        raise ValueError(
            f"{function}(weight): shape {tuple(weight.shape)} is not the input's, {tuple(losses.shape)}"
        )
    losses = losses * weight
    if code == 0:
        return losses
    return losses.sum() if code == 2 else losses.sum() / weight.sum()


@overridable
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)², optionally times a `weight` of the same shape."""
    _warn_of_sizes("mse_loss", input, target)
    code = reduction_code("mse_loss", reduction, size_average, reduce)
    if weight is not None:
        return _weighted("mse_loss", _mse_loss(input, target, 0), weight, code)
    return _mse_loss(input, target, code)


@overridable
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|, optionally times a `weight` of the same shape."""
    _warn_of_sizes("l1_loss", input, target)
    code = reduction_code("l1_loss", reduction, size_average, reduce)
    if weight is not None:
        return _weighted("l1_loss", _l1_loss(input, target, 0), weight, code)
    return _l1_loss(input, target, code)


@overridable
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d² / (2 beta) where d = |input - target| is below `beta`, else d - beta / 2 (Girshick 2015)."""
    _warn_of_sizes("smooth_l1_loss", input, target)
    if beta < 0:
        raise ValueError(f"smooth_l1_loss(beta): got {beta}, needs a number of at least 0")
    code = reduction_code("smooth_l1_loss", reduction, size_average, reduce)
    # At beta 0 the parabola vanishes and its formula would divide by zero.
    return _l1_loss(input, target, code) if beta == 0 else _smooth_l1_loss(input, target, code, beta)


@overridable
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d² / 2 where d = |input - target| is below `delta`, else delta (d - delta / 2) (Huber 1964).

    Optionally times a `weight` of the same shape; the mean is then over the elements.
    """
    _warn_of_sizes("huber_loss", input, target)
    code = reduction_code("huber_loss", reduction)
    if weight is None:
        return _huber_loss(input, target, code, delta)
    losses = _weighted("huber_loss", _huber_loss(input, target, 0, delta), weight, 0)
    return losses if code == 0 else losses.sum() if code == 2 else losses.mean()


@overridable
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(t log p + (1 - t) log(1 - p)) of probabilities p = `input` and t = `target`; logarithms stop at -100.

    Raises:
        ValueError: the shapes differ.
        RuntimeError: `input` holds, on the CPU, anything but probabilities.
    """
    code = reduction_code("binary_cross_entropy", reduction, size_average, reduce)
    _same_shape("binary_cross_entropy", input, target)
    return _binary_cross_entropy(input, target, weight, code)


@overridable
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """:func:`binary_cross_entropy` of sigmoid(`input`), computed without overflow.

    `pos_weight` multiplies the part of positive targets.

    Raises:
        ValueError: the shapes differ.
    """
    code = reduction_code("binary_cross_entropy_with_logits", reduction, size_average, reduce)
    _same_shape("binary_cross_entropy_with_logits", input, target)
    return _binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


def _same_shape(function: str, input: Tensor, target: Tensor) -> None:
    if target.shape != input.shape:
        raise ValueError(
            f"{function}(input, target): Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}); they must be the same\nhint: reshape the target with view_as(input)"
        )


@overridable
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """t (log t - input) of log-probabilities `input` and probabilities t = `target`, or with `log_target`
    their logs.

    `reduction` may also be "batchmean", the sum divided by the batch size: the divergence itself.
    """
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = _kl_div(input, target, 2, log_target=log_target)
        return total / input.shape[0] if input.dim() else total
    return _kl_div(
        input, target, reduction_code("kl_div", reduction, size_average, reduce), log_target=log_target
    )


@overridable
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return the negative log-likelihood of label sequences whose alignment with `log_probs` is not known.

    Connectionist temporal classification (Graves et al. 2006). "mean" divides each loss by its target's
    length.

    Args:
        log_probs: log-probabilities (T, N, C), or (T, C).
        targets: integers (N, S), or all targets joined.
        input_lengths, target_lengths: (N), integers; tensors or sequences.
        blank: the class that stands for no label.
        zero_infinity: whether a target that is too long for its input counts zero instead of infinity.
    """
    code = reduction_code("ctc_loss", reduction)
    lengths = _as_lengths(input_lengths), _as_lengths(target_lengths)
    return _ctc_loss(log_probs, targets, *lengths, blank, code, zero_infinity)


def _as_lengths(given: Any) -> Any:
    """A tensor of the lengths, in the dtype that they have; an empty sequence has none, and is int64."""
    made = given if isinstance(given, Tensor) else core.tensor(given)
    return made if made is given or made.numel() else made.to(core.int64)
