"""A module that computes a linear layer and the cross entropy of its scores together."""

from __future__ import annotations

import math

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..functional.linear_cross_entropy import LinearCrossEntropyOptions
from ..module import Module
from .linear import Linear


class LinearCrossEntropyLoss(Module):
    """The cross entropy of a linear layer's scores; see :func:`rushlight_nn.functional.linear_cross_entropy`.

    Args:
        in_features: size of the input's last dimension.
        num_classes: C, the number of classes.
        out_features: the sizes d1, ... of additional dimensions of the target, with one loss for each position.
        bias: whether the linear layer has a bias.
        device: device of the parameters.
        dtype: dtype of the parameters.
        reduction, weight, ignore_index, label_smoothing, options: see :func:`rushlight_nn.functional.linear_cross_entropy`.

    Shape:
        - Input: (N, in_features) or (in_features).
        - Target: classes (N, d1, ...), int64, or probabilities (N, C, d1, ...).
        - Output: (), or (N, d1, ...) with `reduction` "none".

    Raises:
        RuntimeError: the shape of `weight` is not (C), or `label_smoothing` is not between 0 and 1.

    Example:
        >>> loss = nn.LinearCrossEntropyLoss(8, num_classes=1000)
        >>> loss(torch.randn(32, 8), torch.randint(0, 1000, (32,))).shape
        torch.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"LinearCrossEntropyLoss(weight): got shape {tuple(weight.shape)}, needs {(num_classes,)}"
            )
        if not 0.0 <= label_smoothing <= 1.0:
            raise RuntimeError(
                f"LinearCrossEntropyLoss(label_smoothing): got {label_smoothing}, needs a number from 0 to 1"
            )
        super().__init__()
        self.register_buffer("weight", weight)
        self.reduction = reduction
        self.num_classes = num_classes
        self.out_features: tuple[int, ...] = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear: Linear = Linear(
            in_features, math.prod(out_features, start=num_classes), bias, device, dtype
        )
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}"
        )
