"""Losses. Every loss has an argument `reduction`: "mean" (the default), "sum", or "none" for one value per element."""

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
    """Return the cross entropy between the softmax of the input and the targets.

    Args:
        input: unnormalised scores (logits).
        target: class indices (int64), or probabilities of the input's dtype.
        weight: a factor for each class. If the targets are classes, "mean" divides the sum of the losses by the sum of the
            factors of the target classes.
        size_average, reduce: deprecated; use `reduction`.
        ignore_index: a target class that is excluded from the loss; only for targets that are classes.
        reduction: "mean", "sum", or "none" for one value per target.
        label_smoothing: the part of each target that is spread evenly over all classes, from 0 to 1.

    Shape:
        - Input: (C), (N, C) or (N, C, d1, ...).
        - Target: classes (), (N) or (N, d1, ...), from 0 to C - 1; or probabilities of the input's shape.
        - `weight`: (C).
        - Output: (), or one value per target with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.
        IndexError: a class is out of range.
        RuntimeError: the targets are probabilities, and `ignore_index` is not negative.

    Example:
        >>> logits = torch.tensor([[2.0, 0.0], [0.0, 0.0]])
        >>> F.cross_entropy(logits, torch.tensor([0, 1]), reduction="none")
        tensor([0.1269, 0.6931])
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
    """Return the negative log-likelihood loss: the mean of the negative log-probabilities of the target classes.

    Args:
        input: log-probabilities.
        target: class indices, int64 or uint8.
        weight: a factor for each class. "mean" divides the sum of the losses by the sum of the factors of the target
            classes.
        size_average, reduce: deprecated; use `reduction`.
        ignore_index: a target class that is excluded from the loss.
        reduction: "mean", "sum", or "none" for one value per target.

    Shape:
        - Input: (C), (N, C) or (N, C, d1, ...).
        - Target: (), (N) or (N, d1, ...), from 0 to C - 1.
        - `weight`: (C).
        - Output: (), or the target's shape with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.
        IndexError: a class is out of range.

    Example:
        >>> log_probs = torch.tensor([[0.2, 0.8], [0.5, 0.5]]).log()
        >>> F.nll_loss(log_probs, torch.tensor([1, 0]), reduction="none")
        tensor([0.2231, 0.6931])
    """
    code = reduction_code("nll_loss", reduction, size_average, reduce)
    if target.dtype == core.uint8:
        target = target.to(core.int64)
    return _nll_loss(input, target, weight, code, ignore_index)


def _warn_of_sizes(function: str, input: Tensor, target: Tensor) -> None:
    if target.shape != input.shape:
        warnings.warn(
            # Use PyTorch's text, because programs search for it and filter it.
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
            f"lead to incorrect results due to broadcasting. Please ensure they have the same size. ({function})",
            stacklevel=3,
        )


def _weighted(function: str, losses: Tensor, weight: Tensor, code: int) -> Tensor:
    """Multiply `losses` by `weight` and reduce the products. The mean divides by the sum of the weights."""
    if weight.shape != losses.shape:
        raise ValueError(
            f"{function}(weight): got shape {tuple(weight.shape)}, needs the shape of the losses, {tuple(losses.shape)}"
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
    """Return the mean of ``(input - target)²``. Different shapes are broadcast, with a warning.

    Args:
        input: the predictions.
        target: the targets.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.
        weight: a factor for each element; "mean" divides the sum of the losses by the sum of the factors.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown, or `weight` does not have the shape of the unreduced loss.

    Example:
        >>> F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """
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
    """Return the mean of ``|input - target|``. Different shapes are broadcast, with a warning.

    Args:
        input: the predictions.
        target: the targets.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.
        weight: a factor for each element; "mean" divides the sum of the losses by the sum of the factors.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown, or `weight` does not have the shape of the unreduced loss.

    Example:
        >>> F.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]), reduction="sum")
        tensor(3.)
    """
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
    """Return a loss that is quadratic for small errors and linear for large errors (Girshick 2015).

    With d = |input - target|, the loss is ``d² / (2 · beta)`` where d < beta, else ``d - beta / 2``.

    Args:
        input: the predictions.
        target: the targets.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.
        beta: the error at which the loss becomes linear. With 0 the loss is :func:`l1_loss`.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        RuntimeError: `beta` is negative.
        ValueError: `reduction` is unknown.

    Example:
        >>> F.smooth_l1_loss(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none")
        tensor([0.1250, 2.5000])
    """
    _warn_of_sizes("smooth_l1_loss", input, target)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss(beta): got {beta}, needs a number of at least 0")
    code = reduction_code("smooth_l1_loss", reduction, size_average, reduce)
    # With beta 0 there is no quadratic part, and its formula would divide by zero.
    return _l1_loss(input, target, code) if beta == 0 else _smooth_l1_loss(input, target, code, beta)


@overridable
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Return a loss that is quadratic for small errors and linear for large errors (Huber 1964).

    With d = |input - target|, the loss is ``d² / 2`` where d <= delta, else ``delta · (d - delta / 2)``.

    Args:
        input: the predictions.
        target: the targets.
        reduction: "mean", "sum", or "none" for one value per element.
        delta: the error at which the loss becomes linear.
        weight: a factor for each element; "mean" divides the sum of the losses by the number of elements.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown, or `weight` does not have the shape of the unreduced loss.

    Example:
        >>> F.huber_loss(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none")
        tensor([0.1250, 2.5000])
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
    """Return ``-(t · log(p) + (1 - t) · log(1 - p))`` of probabilities p and targets t.

    A logarithm below -100 is replaced by -100, so that the loss is finite.

    Args:
        input: the probabilities p.
        target: the targets t, from 0 to 1.
        weight: factors of the elements, broadcastable to the input.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: the shapes differ, or `reduction` is unknown.
        RuntimeError: an element of the input or the target is not between 0 and 1 (checked on the CPU only).

    Example:
        >>> F.binary_cross_entropy(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.0]), reduction="none")
        tensor([0.1054, 0.6931])
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
    """Return :func:`binary_cross_entropy` of ``sigmoid(input)``, computed without overflow.

    Args:
        input: the logits.
        target: the targets, from 0 to 1.
        weight: factors of the elements, broadcastable to the input.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.
        pos_weight: factors of the loss of positive targets, broadcastable to the input.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: the shapes differ, or `reduction` is unknown.

    Example:
        >>> F.binary_cross_entropy_with_logits(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.0]), reduction="none")
        tensor([0.6931, 0.1269])
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
    """Return ``target · (log(target) - input)``, the Kullback-Leibler divergence for log-probabilities `input`.

    Args:
        input: log-probabilities.
        target: probabilities, or log-probabilities with `log_target`.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", "batchmean" for the sum divided by the batch size, or "none" for one value per element.
        log_target: whether `target` contains log-probabilities.

    Shape:
        - Input and target: (N, *), the same shape.
        - Output: (), or (N, *) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.

    Example:
        >>> p, q = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.9, 0.1]])
        >>> F.kl_div(q.log(), p, reduction="batchmean")  # KL(p || q)
        tensor(0.5108)
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
    """Return the negative log-likelihood of label sequences with an unknown alignment to the input.

    The loss is also called the connectionist temporal classification (CTC) loss (Graves et al. 2006).

    Args:
        log_probs: log-probabilities of the classes at each step.
        targets: the classes, one row per sequence or all sequences concatenated.
        input_lengths: lengths of the inputs, a tensor or a sequence.
        target_lengths: lengths of the targets, a tensor or a sequence.
        blank: the index of the blank label.
        reduction: "sum", "none", or "mean" for the mean of all losses after each is divided by the length of its target.
        zero_infinity: set the loss of a target that is too long for its input to 0 instead of infinity.

    Shape:
        - Log-probabilities: (T, N, C), or (T, C) without a batch.
        - Targets: (N, S), or (sum of the target lengths).
        - Lengths: (N), or () without a batch.
        - Output: (), or (N) with `reduction` "none".

    Raises:
        ValueError: `reduction` is unknown.

    Example:
        >>> log_probs = torch.full((3, 1, 2), 0.5).log()  # three steps, two classes of which 0 is the blank
        >>> F.ctc_loss(log_probs, torch.tensor([[1]]), [3], [1]).exp()  # one over the probability of "1", 6 / 8
        tensor(1.3333)
    """
    code = reduction_code("ctc_loss", reduction)
    lengths = _as_lengths(input_lengths), _as_lengths(target_lengths)
    return _ctc_loss(log_probs, targets, *lengths, blank, code, zero_infinity)


def _as_lengths(given: Any) -> Any:
    """Return the lengths as a tensor. Tensors are returned unchanged, and an empty sequence becomes an int64 tensor."""
    made = given if isinstance(given, Tensor) else core.tensor(given)
    return made if made is given or made.numel() else made.to(core.int64)
