"""Gradients of convolutions with respect to their inputs and weights, as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight_autograd as autograd
import rushlight_core as core
from rushlight_core import Tensor
from rushlight_nn import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(
    convolution: Callable[..., Tensor],
    operands: tuple[Any, Any],
    wanted: int,
    grad_output: Tensor,
    options: Any,
) -> Tensor:
    """Return the gradient for the operand that is given only by its sizes. A convolution is linear in both operands."""
    differentiable = core.is_grad_enabled()
    unknown = core.zeros(
        operands[wanted], dtype=grad_output.dtype, device=grad_output.device, requires_grad=True
    )
    with core.enable_grad():
        output = convolution(
            *((unknown, operands[1]) if wanted == 0 else (operands[0], unknown)), None, *options
        )
    if output.shape != grad_output.shape:
        raise RuntimeError(
            f"{convolution.__name__}: grad_output must have the shape of the result, {tuple(output.shape)}, "
            f"got {tuple(grad_output.shape)}"
        )
    return autograd.grad(output, unknown, grad_output, create_graph=differentiable)[0]


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `F.conv1d` with respect to its input.

    Args:
        input_size: the input's sizes.
        weight: the weight.
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: as given to `F.conv1d`.

    Shape:
        - `grad_output`: (N, C, L), of the result; output: (N, C, L), of the input.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result.

    Example:
        >>> nn.grad.conv1d_input((1, 1, 5), torch.ones(1, 1, 3), torch.ones(1, 1, 3)).shape
        torch.Size([1, 1, 5])
    """
    return _gradient(F.conv1d, (input_size, weight), 0, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `F.conv1d` with respect to its weight.

    Args:
        input: the input.
        weight_size: the weight's sizes.
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: as given to `F.conv1d`.

    Shape:
        - `input` and `grad_output`: (N, C, L); output: `weight_size`.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result.

    Example:
        >>> nn.grad.conv1d_weight(torch.ones(1, 1, 5), (1, 1, 3), torch.ones(1, 1, 3)).shape
        torch.Size([1, 1, 3])
    """
    return _gradient(F.conv1d, (input, weight_size), 1, grad_output, (stride, padding, dilation, groups))


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `F.conv2d` with respect to its input.

    Args:
        input_size: the input's sizes.
        weight: the weight.
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: as given to `F.conv2d`.

    Shape:
        - `grad_output`: (N, C, H, W), of the result; output: (N, C, H, W), of the input.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result.

    Example:
        >>> nn.grad.conv2d_input((1, 1, 5, 5), torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3)).shape
        torch.Size([1, 1, 5, 5])
    """
    return _gradient(F.conv2d, (input_size, weight), 0, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `F.conv2d` with respect to its weight.

    Args:
        input: the input.
        weight_size: the weight's sizes.
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: as given to `F.conv2d`.

    Shape:
        - `input` and `grad_output`: (N, C, H, W); output: `weight_size`.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result.

    Example:
        >>> nn.grad.conv2d_weight(torch.ones(1, 1, 5, 5), (1, 1, 3, 3), torch.ones(1, 1, 3, 3)).shape
        torch.Size([1, 1, 3, 3])
    """
    return _gradient(F.conv2d, (input, weight_size), 1, grad_output, (stride, padding, dilation, groups))


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `F.conv3d` with respect to its input.

    Args:
        input_size: the input's sizes.
        weight: the weight.
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: as given to `F.conv3d`.

    Shape:
        - `grad_output`: (N, C, D, H, W), of the result; output: (N, C, D, H, W), of the input.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result.

    Example:
        >>> nn.grad.conv3d_input((1, 1, 5, 5, 5), torch.ones(1, 1, 3, 3, 3), torch.ones(1, 1, 3, 3, 3)).shape
        torch.Size([1, 1, 5, 5, 5])
    """
    return _gradient(F.conv3d, (input_size, weight), 0, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `F.conv3d` with respect to its weight.

    Args:
        input: the input.
        weight_size: the weight's sizes.
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: as given to `F.conv3d`.

    Shape:
        - `input` and `grad_output`: (N, C, D, H, W); output: `weight_size`.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result.

    Example:
        >>> nn.grad.conv3d_weight(torch.ones(1, 1, 5, 5, 5), (1, 1, 3, 3, 3), torch.ones(1, 1, 3, 3, 3)).shape
        torch.Size([1, 1, 3, 3, 3])
    """
    return _gradient(F.conv3d, (input, weight_size), 1, grad_output, (stride, padding, dilation, groups))
