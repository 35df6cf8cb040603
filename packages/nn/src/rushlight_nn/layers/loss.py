"""Loss layers, which call the corresponding functions of :mod:`rushlight_nn.functional`."""

from __future__ import annotations

from rushlight_core import Tensor

from .. import functional as F
from ..functional._arguments import reduction_code
from ..module import Module


class _Loss(Module):
    reduction: str

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            code = reduction_code(type(self).__name__, reduction, size_average, reduce)
            reduction = ("none", "mean", "sum")[code]
        elif not (reduction == "batchmean" and isinstance(self, KLDivLoss)):
            reduction_code(type(self).__name__, reduction)
        self.reduction = reduction

    def extra_repr(self) -> str:
        return "" if self.reduction == "mean" else f"reduction={self.reduction!r}"


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """The mean squared error: the mean of ``(input - target)²``.

    Args:
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Example:
        >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The mean absolute error: the mean of ``|input - target|``.

    Args:
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Example:
        >>> nn.L1Loss(reduction="sum")(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]))
        tensor(3.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """A loss that is quadratic for small errors and linear for large errors (Girshick 2015).

    With d = |input - target|, the loss is ``d² / (2 · beta)`` where d < beta, else ``d - beta / 2``.

    Args:
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.
        beta: the error at which the loss becomes linear. With `beta` = 0, the loss is the same as :class:`L1Loss`.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        RuntimeError: `beta` is negative (raised when the module is called).

    Example:
        >>> nn.SmoothL1Loss(reduction="none")(torch.tensor([0.5, 3.0]), torch.tensor([0.0, 0.0]))
        tensor([0.1250, 2.5000])
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """A loss that is quadratic for small errors and linear for large errors (Huber 1964).

    With d = |input - target|, the loss is ``d² / 2`` where d <= delta, else ``delta · (d - delta / 2)``.

    Args:
        reduction: "mean", "sum", or "none" for one value per element.
        delta: the error at which the loss becomes linear.

    Shape:
        - Input and target: (*), the same shape.
        - Output: (), or (*) with `reduction` "none".

    Example:
        >>> nn.HuberLoss(reduction="none")(torch.tensor([0.5, 3.0]), torch.tensor([0.0, 0.0]))
        tensor([0.1250, 2.5000])
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence: ``target · (log(target) - input)``, for an input of log-probabilities.

    Use `reduction="batchmean"` for the mean divergence per sample; "mean" divides by the number of elements.

    Args:
        size_average, reduce: deprecated; use `reduction`.
        reduction: "batchmean", "mean", "sum", or "none" for one value per element.
        log_target: whether the target contains log-probabilities, like the input.

    Shape:
        - Input and target: (N, *), the same shape.
        - Output: (), or (N, *) with `reduction` "none".

    Example:
        >>> p, q = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.9, 0.1]])
        >>> nn.KLDivLoss(reduction="batchmean")(q.log(), p)  # KL(p || q)
        tensor(0.5108)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class NLLLoss(_WeightedLoss):
    """The negative log-likelihood of classes: the negative of the input at the index of the target class.

    The input contains log-probabilities, such as the output of :class:`LogSoftmax`. :class:`CrossEntropyLoss` combines
    LogSoftmax and NLLLoss.

    Args:
        weight: a factor for the loss of each class, (C). The reduction "mean" divides the sum of the losses by the sum of
            the factors of the target classes.
        size_average, reduce: deprecated; use `reduction`.
        ignore_index: a target class that is excluded from the loss.
        reduction: "mean", "sum", or "none" for one value per target.

    Shape:
        - Input: (C), (N, C) or (N, C, d1, ...).
        - Target: (), (N) or (N, d1, ...), int64, from 0 to C - 1.
        - Output: (), or the target's shape with `reduction` "none".

    Example:
        >>> log_probs = torch.tensor([[0.2, 0.8], [0.5, 0.5]]).log()
        >>> nn.NLLLoss(reduction="none")(log_probs, torch.tensor([1, 0]))
        tensor([0.2231, 0.6931])
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy between the softmax of the input and the targets.

    The input contains scores (logits), which need not be normalised. Targets are classes or probabilities of the
    classes.

    Args:
        weight: a factor for the loss of each class, (C). If the targets are classes, the reduction "mean" divides the sum of
            the losses by the sum of the factors of the target classes.
        size_average, reduce: deprecated; use `reduction`.
        ignore_index: a target class that is excluded from the loss; only for targets that are classes.
        reduction: "mean", "sum", or "none" for one value per target.
        label_smoothing: the fraction of each target that is spread evenly over all classes, from 0 to 1 (Szegedy et al.
            2016).

    Shape:
        - Input: (C), (N, C) or (N, C, d1, ...).
        - Target: classes (), (N) or (N, d1, ...), int64, from 0 to C - 1; or probabilities of the shape and dtype of
          the input.
        - Output: (), or one value per target with `reduction` "none".

    Example:
        >>> logits = torch.tensor([[2.0, 0.0], [0.0, 0.0]])
        >>> nn.CrossEntropyLoss(reduction="none")(logits, torch.tensor([0, 1]))
        tensor([0.1269, 0.6931])
        >>> nn.CrossEntropyLoss()(logits, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
        tensor(0.4100)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """The binary cross entropy: ``-(t · log(p) + (1 - t) · log(1 - p))`` of probabilities p and targets t.

    A logarithm below -100 is replaced by -100, so that the loss is finite. Use :class:`BCEWithLogitsLoss` for inputs that
    are logits.

    Args:
        weight: a factor for the loss of each element; its shape must broadcast to the input.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.

    Shape:
        - Input and target: (*), the same shape, from 0 to 1.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: the shapes differ (raised when the module is called).
        RuntimeError: the input has an element outside of 0 to 1 (raised when the module is called).

    Example:
        >>> nn.BCELoss(reduction="none")(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.0]))
        tensor([0.1054, 0.6931])
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """The binary cross entropy of the sigmoid of the input, computed without overflow.

    Args:
        weight: a factor for the loss of each element; its shape must broadcast to the input.
        size_average, reduce: deprecated; use `reduction`.
        reduction: "mean", "sum", or "none" for one value per element.
        pos_weight: factors w in the loss ``-(w · t · log(p) + (1 - t) · log(1 - p))``, where t is the target and p is the
            sigmoid of the input; their shape must broadcast to the input. Factors above 1 increase the recall.

    Shape:
        - Input and target: (*), the same shape; targets from 0 to 1.
        - Output: (), or (*) with `reduction` "none".

    Raises:
        ValueError: the shapes differ (raised when the module is called).

    Example:
        >>> nn.BCEWithLogitsLoss(reduction="none")(torch.tensor([0.0, 1000.0]), torch.tensor([1.0, 0.0]))
        tensor([6.9315e-01, 1.0000e+03])
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class CTCLoss(_Loss):
    """Connectionist temporal classification: a loss for label sequences whose alignment with the input is not known.

    The loss is the negative logarithm of the sum of the probabilities of all alignments (Graves et al. 2006).

    Args:
        blank: the index of the blank label.
        reduction: "sum", "none", or "mean" for the mean of all losses after each is divided by the length of its target.
        zero_infinity: whether the loss of a target that is too long for its input is 0 instead of infinity.

    Shape:
        - Log-probabilities: (T, N, C), or (T, C) without a batch.
        - Targets: (N, S), or (sum of the target lengths) with all targets concatenated.
        - Input lengths and target lengths: (N), or () without a batch.
        - Output: (), or (N) with `reduction` "none".

    Example:
        >>> log_probs = torch.randn(50, 16, 20).log_softmax(2)
        >>> targets = torch.randint(1, 20, (16, 30))
        >>> input_lengths = torch.full((16,), 50)
        >>> target_lengths = torch.randint(10, 30, (16,))
        >>> nn.CTCLoss()(log_probs, targets, input_lengths, target_lengths).shape
        torch.Size([])
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        return F.ctc_loss(
            *(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction),
            zero_infinity=self.zero_infinity,
        )
