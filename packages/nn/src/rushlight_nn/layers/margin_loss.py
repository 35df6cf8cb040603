"""Loss layers for similarity, ranking, counts and classes; see the functions in :mod:`rushlight_nn.functional`."""

from __future__ import annotations

from collections.abc import Callable

from rushlight_core import Tensor

from .. import functional as F
from .loss import _Loss, _WeightedLoss


class HingeEmbeddingLoss(_Loss):
    """The hinge embedding loss: the input where the target is 1, and ``max(0, margin - input)`` where the target is -1.

    Args:
        margin: the distance above which the loss of dissimilar pairs is zero.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (*), the same shape; the targets are 1 or -1.
        - Output: (), or (*) with `reduction` "none".

    Example:
        >>> nn.HingeEmbeddingLoss(reduction="none")(torch.tensor([0.3, 0.3]), torch.tensor([1.0, -1.0]))
        tensor([0.3000, 0.7000])
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """The margin ranking loss: ``max(0, margin - target · (input1 - input2))``.

    `input1` should be larger than `input2` where the target is 1, and smaller where the target is -1.

    Args:
        margin: the difference of the inputs above which the loss is zero.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Inputs and target: (N) or (), with the same number of dimensions.
        - Output: (), or (N) with `reduction` "none".

    Raises:
        RuntimeError: the tensors have different numbers of dimensions (raised when the module is called).

    Example:
        >>> loss = nn.MarginRankingLoss(reduction="none")
        >>> loss(torch.tensor([1.0, 1.0]), torch.tensor([3.0, 3.0]), torch.tensor([1.0, -1.0]))
        tensor([2., 0.])
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """The cosine embedding loss: ``1 - cos`` where the target is 1, and ``max(0, cos - margin)`` where the target is -1.

    Args:
        margin: the cosine, from -1 to 1, below which the loss of dissimilar pairs is zero.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per pair.

    Shape:
        - Inputs: (N, D) or (D).
        - Target: (N) or (); the targets are 1 or -1.
        - Output: (), or (N) with `reduction` "none".

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> nn.CosineEmbeddingLoss(reduction="none")(x, x, torch.tensor([1, -1]))
        tensor([0., 1.])
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """The triplet margin loss: ``max(0, margin + d(anchor, positive) - d(anchor, negative))`` (Balntas et al. 2016).

    The distance d(x, y) is the p-norm of x - y + eps over the last dimension.

    Args:
        margin: the smallest difference d(anchor, negative) - d(anchor, positive) for which the loss is zero.
        p: order of the norm.
        eps: added to the differences of the inputs.
        swap: whether to use the smaller of d(anchor, negative) and d(positive, negative) instead of d(anchor,
            negative).
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per triplet.

    Shape:
        - Inputs: (N, D) or (D).
        - Output: (), or (N) with `reduction` "none".

    Raises:
        ValueError: `margin` is not positive.

    Example:
        >>> anchor, positive, negative = (torch.tensor([[x]]) for x in (0.0, 1.0, 1.5))
        >>> nn.TripletMarginLoss()(anchor, positive, negative)
        tensor(0.5000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss(margin): got {margin}, needs a positive number")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            *(anchor, positive, negative, self.margin, self.p, self.eps, self.swap), reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(_Loss):
    """A :class:`TripletMarginLoss` with a user-defined distance function.

    Args:
        distance_function: a function of two tensors that returns their distances. Default: the Euclidean distance.
        margin: the smallest difference d(anchor, negative) - d(anchor, positive) for which the loss is zero.
        swap: whether to use the smaller of d(anchor, negative) and d(positive, negative) instead of d(anchor,
            negative).
        reduction: "mean", "sum", or "none" for one value per triplet.

    Shape:
        - Inputs: (N, *), in a shape that `distance_function` accepts.
        - Output: (), or (N) with `reduction` "none".

    Raises:
        ValueError: `margin` is not positive.

    Example:
        >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: 1 - F.cosine_similarity(x, y))
        >>> anchor, positive, negative = (torch.tensor([x]) for x in ([1.0, 0.0], [1.0, 0.0], [0.0, 1.0]))
        >>> loss(anchor, positive, negative)
        tensor(0.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss(margin): got {margin}, needs a positive number")
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts under Poisson distributions.

    Args:
        log_input: whether the input is the logarithm of the mean. If True, the loss is
            ``exp(input) - target · input``. Otherwise the loss is ``input - target · log(input + eps)``.
        full: whether to add Stirling's approximation of log(target!) where the target is above 1.
        size_average, reduce: deprecated; use `reduction`.
        eps: added to the mean before the logarithm.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Example:
        >>> nn.PoissonNLLLoss(log_input=False)(torch.tensor([2.0]), torch.tensor([3.0]))  # 2 - 3 log 2
        tensor(-0.0794)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            *(log_input, target, self.log_input, self.full), eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of targets under normal distributions: ``(log(var) + (input - target)² / var) / 2``.

    The arguments of `forward` are the means, the targets and the variances. See Nix and Weigend 1994.

    Args:
        full: whether to add the constant log(2 pi) / 2.
        eps: lower limit of the variances.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (N, *) or (*).
        - Variances: a number, or a tensor of the input's shape. One dimension of this tensor may have size 1
          instead, or the last dimension may be missing.
        - Output: (), or the input's shape with `reduction` "none".

    Raises:
        ValueError: a variance is negative or the shapes do not fit (raised when the module is called).

    Example:
        >>> nn.GaussianNLLLoss()(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([2.0]))  # (log 2 + 4 / 2) / 2
        tensor(1.3466)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class SoftMarginLoss(_Loss):
    """The logistic loss of two classes: ``log(1 + exp(-target · input))`` for targets 1 and -1.

    Args:
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Example:
        >>> nn.SoftMarginLoss(reduction="none")(torch.tensor([0.0, 2.0]), torch.tensor([1.0, -1.0]))
        tensor([0.6931, 2.1269])
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """The multi-class hinge loss: the sum of ``max(0, margin - input[target] + input[other])^p / C``.

    The sum is over all classes other than the target.

    Args:
        p: 1 or 2.
        margin: how much larger the target's score should be than the other scores.
        weight: a factor for each target class, (C).
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per sample.

    Shape:
        - Input: (N, C) or (C).
        - Target: (N) or (), int64, from 0 to C - 1.
        - Output: (), or the target's shape with `reduction` "none".

    Raises:
        ValueError: `p` is neither 1 nor 2, or `weight` does not have one dimension.

    Example:
        >>> nn.MultiMarginLoss()(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([3]))  # (0.3 + 0.4 + 0.6) / 4
        tensor(0.3250)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss(p): got {p}, needs 1 or 2")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss(weight): got {weight.dim()} dimensions, needs one")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The hinge loss of several target classes: the sum of ``max(0, 1 - input[target] + input[other]) / C``.

    The sum is over all pairs of a target class and a class that is not a target.

    Args:
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per sample.

    Shape:
        - Input: (N, C) or (C).
        - Target: the input's shape, int64: the target classes of each row, followed by -1.
        - Output: (), or (N) with `reduction` "none".

    Example:
        >>> scores = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> nn.MultiLabelMarginLoss()(scores, torch.tensor([[3, 0, -1, 1]]))  # targets 3 and 0
        tensor(0.8500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The binary cross entropy of the sigmoid of the input, averaged over the classes.

    Args:
        weight: a factor for each class, (C).
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per sample.

    Shape:
        - Input and target: (N, C); the targets are from 0 to 1.
        - Output: (), or (N) with `reduction` "none".

    Example:
        >>> nn.MultiLabelSoftMarginLoss()(torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(1.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)
