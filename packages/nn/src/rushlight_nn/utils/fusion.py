"""Fusion of layers with the batch normalisation that follows them, in evaluation mode."""

from __future__ import annotations

from copy import deepcopy

import rushlight_core as core
from rushlight_core import Tensor

from ..parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from ..module import Module

    Layer = TypeVar("Layer", bound=Module)


def _fused(
    weight: Tensor, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, scale: Tensor | None, shift: Tensor | None,
    shape: list[int],
) -> tuple[Parameter, Parameter]:  # fmt: skip
    factor = (var + eps).rsqrt()
    factor = factor if scale is None else factor * scale
    moved = (core.zeros_like(mean) if bias is None else bias) - mean
    moved = moved * factor if shift is None else moved * factor + shift
    return (
        Parameter((weight * factor.reshape(shape)).to(weight.dtype), weight.requires_grad),
        Parameter(
            moved.to(weight.dtype if bias is None else bias.dtype), bias is not None and bias.requires_grad
        ),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Return the weight and bias of one convolution that replaces a convolution and the batch normalisation after it.

    Args:
        conv_w: weight of the convolution.
        conv_b: bias of the convolution, or None.
        bn_rm: running mean of the normalisation.
        bn_rv: running variance of the normalisation.
        bn_eps: `eps` of the normalisation.
        bn_w: weight of the normalisation, or None.
        bn_b: bias of the normalisation, or None.
        transpose: whether the convolution is transposed, so that the output channels are the second dimension of its weight.

    Shape:
        - `conv_w`: (out, in, *kernel), or (in, out, *kernel) if transposed; all other tensors: (out).
        - Output: a weight of the shape of `conv_w`, and a bias (out). The weight has the `requires_grad` of `conv_w`. The
          bias has the `requires_grad` of `conv_b`, or False if `conv_b` is None.

    Example:
        >>> weight, bias = nn.utils.fuse_conv_bn_weights(
        ...     torch.ones(1, 1, 1), None, torch.tensor([2.0]), torch.tensor([4.0]), 0.0, None, None
        ... )
        >>> weight.item(), bias.item()  # (x - 2) / 2
        (0.5, -1.0)
    """
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Return the weight and bias of one linear layer that replaces a linear layer and the batch normalisation after it.

    The arguments are the same as for :func:`fuse_conv_bn_weights`.

    Shape:
        - `linear_w`: (out, in); all other tensors: (out).
        - Output: (out, in) and (out).

    Example:
        >>> weight, bias = nn.utils.fuse_linear_bn_weights(
        ...     torch.ones(1, 1), None, torch.tensor([2.0]), torch.tensor([4.0]), 0.0, None, None
        ... )
        >>> weight.item(), bias.item()  # (x - 2) / 2
        (0.5, -1.0)
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def fuse_conv_bn_eval(conv: Layer, bn: Module, transpose: bool = False) -> Layer:
    """Return a copy of `conv` that computes `conv` and then `bn`, both in evaluation mode.

    Args:
        conv: a convolution.
        bn: a batch normalisation with running statistics.
        transpose: whether the convolution is transposed.

    Raises:
        RuntimeError: a layer is in training mode, or `bn` has no running statistics.

    Example:
        >>> conv, bn = nn.Conv2d(3, 8, 3).eval(), nn.BatchNorm2d(8).eval()
        >>> fused = nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> x = torch.randn(1, 3, 6, 6)
        >>> torch.allclose(fused(x), bn(conv(x)), atol=1e-5)
        True
    """
    return _joined(
        "fuse_conv_bn_eval", conv, bn, [-1 if d == int(transpose) else 1 for d in range(conv.weight.dim())]
    )


def fuse_linear_bn_eval(linear: Layer, bn: Module) -> Layer:
    """Return a copy of `linear` that computes `linear` and then `bn`, both in evaluation mode.

    Args:
        linear: a linear layer.
        bn: a batch normalisation with running statistics.

    Raises:
        RuntimeError: a layer is in training mode, `bn` has no running statistics, or `linear` and `bn` have different
            numbers of features.

    Example:
        >>> linear, bn = nn.Linear(3, 8).eval(), nn.BatchNorm1d(8).eval()
        >>> fused = nn.utils.fuse_linear_bn_eval(linear, bn)
        >>> x = torch.randn(5, 3)
        >>> torch.allclose(fused(x), bn(linear(x)), atol=1e-5)
        True
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise RuntimeError(
            f"fuse_linear_bn_eval(linear, bn): got {linear.out_features} features and {bn.num_features} channels, "
            "needs equal numbers"
        )
    return _joined("fuse_linear_bn_eval", linear, bn, [-1, 1])


def _joined(function: str, layer: Layer, bn: Module, shape: list[int]) -> Layer:
    if layer.training or bn.training:
        raise RuntimeError(f"{function}: both layers must be in evaluation mode\nhint: call eval() first")
    if bn.running_mean is None or bn.running_var is None:
        raise RuntimeError(
            f"{function}(bn): must have running statistics, but running_mean or running_var is None"
        )
    result = deepcopy(layer)
    result.weight, result.bias = _fused(
        result.weight, result.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, shape
    )
    return result
