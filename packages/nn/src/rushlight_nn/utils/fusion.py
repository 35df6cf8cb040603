"""Layers in evaluation mode joined into one: a batch normalisation is a factor and a shift for each channel."""

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
        Parameter(moved.to(weight.dtype if bias is None else bias.dtype), weight.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of one convolution that does what a convolution and a batch normalisation behind it do.

    Args:
        conv_w, conv_b: of the convolution, the bias may be None.
        bn_rm, bn_rv, bn_eps, bn_w, bn_b: running mean and variance, eps, factor and shift, the last two may be None.
        transpose: whether the convolution is transposed: its outputs are the second dimension.
    """
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """The same for a linear layer."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def fuse_conv_bn_eval(conv: Layer, bn: Module, transpose: bool = False) -> Layer:
    """Return a copy of `conv` that does what `conv` and then `bn` do, both in evaluation mode.

    Raises:
        RuntimeError: one of both is in training mode, or `bn` has no running statistics.
    """
    return _joined(
        "fuse_conv_bn_eval", conv, bn, [-1 if d == int(transpose) else 1 for d in range(conv.weight.dim())]
    )


def fuse_linear_bn_eval(linear: Layer, bn: Module) -> Layer:
    """Return a copy of `linear` that does what `linear` and then `bn` do, both in evaluation mode.

    Raises:
        RuntimeError: one of both is in training mode, `bn` has no running statistics, or not as many features.
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise RuntimeError(
            f"fuse_linear_bn_eval(linear, bn): {linear.out_features} features against {bn.num_features} channels"
        )
    return _joined("fuse_linear_bn_eval", linear, bn, [-1, 1])


def _joined(function: str, layer: Layer, bn: Module, shape: list[int]) -> Layer:
    if layer.training or bn.training:
        raise RuntimeError(f"{function}: both layers must be in evaluation mode\nhint: call eval() first")
    if bn.running_mean is None or bn.running_var is None:
        raise RuntimeError(f"{function}(bn): has no running statistics to join")
    result = deepcopy(layer)
    result.weight, result.bias = _fused(
        result.weight, result.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, shape
    )
    return result
