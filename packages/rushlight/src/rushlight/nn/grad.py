"""Gradients of convolutions with respect to their inputs and weights, as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight_autograd as autograd
import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core._C import _call_boxed
from rushlight_nn import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(
    convolution: Callable[..., Tensor],
    operands: tuple[Any, Any],
    wanted: int,
    grad_output: Tensor,
    options: tuple[Any, Any, Any, int],
) -> Tensor:
    """Return the gradient of a convolution with respect to its input (`wanted` 0) or its weight (`wanted` 1).

    `operands` contains the input and the weight, but only the sizes of the operand `wanted`. The values of
    this operand are not needed, because a convolution is linear in each operand.
    """
    unknown = core.empty(operands[wanted], dtype=grad_output.dtype, device=grad_output.device)
    input, weight = (unknown, operands[1]) if wanted == 0 else (operands[0], unknown)
    # A convolution on the device "meta" computes the shape, and raises errors for invalid operands and options.
    output = convolution(input.detach().to("meta"), weight.detach().to("meta"), None, *options)
    if output.shape != grad_output.shape:
        raise RuntimeError(
            f"{convolution.__name__}: grad_output must have the shape of the result, {tuple(output.shape)}, "
            f"got {tuple(grad_output.shape)}"
        )
    stride, padding, dilation, groups = options
    dims = weight.dim() - 2
    if isinstance(padding, str) or input.dim() != dims + 2 or not grad_output.is_floating_point():
        return _gradient_of_result(convolution, input, weight, wanted, grad_output, options)
    return _call_boxed(
        "convolution_backward",
        grad_output,
        input,
        weight,
        *(_each(option, dims) for option in (stride, padding, dilation)),
        False,
        (0,) * dims,
        groups,
        (int(wanted == 0), int(wanted == 1), 0),
    )[wanted]


def _gradient_of_result(
    convolution: Callable[..., Tensor],
    input: Tensor,
    weight: Tensor,
    wanted: int,
    grad_output: Tensor,
    options: tuple[Any, Any, Any, int],
) -> Tensor:
    """Compute the gradient with autograd, for arguments that the operator `convolution_backward` does not support."""
    differentiable = core.is_grad_enabled()
    unknown = (input, weight)[wanted].zero_().requires_grad_()
    with core.enable_grad():
        output = convolution(input, weight, None, *options)
    return autograd.grad(output, unknown, grad_output, create_graph=differentiable)[0]


def _each(option: Any, dims: int) -> tuple[int, ...]:
    """Return an option as a tuple with a value for each of `dims` dimensions."""
    values = (option,) if isinstance(option, int) else tuple(option)
    return values * dims if len(values) == 1 else values


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
        stride, padding, dilation, groups: as passed to `F.conv1d`.

    Shape:
        - `grad_output`: (N, C_out, L_out), the shape of the result; output: (N, C_in, L), the shape of the input.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result of the convolution.

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
        stride, padding, dilation, groups: as passed to `F.conv1d`.

    Shape:
        - `input`: (N, C_in, L); `grad_output`: (N, C_out, L_out); output: `weight_size`.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result of the convolution.

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
        stride, padding, dilation, groups: as passed to `F.conv2d`.

    Shape:
        - `grad_output`: (N, C_out, H_out, W_out), the shape of the result; output: (N, C_in, H, W), the shape of the input.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result of the convolution.

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
        stride, padding, dilation, groups: as passed to `F.conv2d`.

    Shape:
        - `input`: (N, C_in, H, W); `grad_output`: (N, C_out, H_out, W_out); output: `weight_size`.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result of the convolution.

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
        stride, padding, dilation, groups: as passed to `F.conv3d`.

    Shape:
        - `grad_output`: (N, C_out, D_out, H_out, W_out), the shape of the result; output: (N, C_in, D, H, W), the
          shape of the input.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result of the convolution.

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
        stride, padding, dilation, groups: as passed to `F.conv3d`.

    Shape:
        - `input`: (N, C_in, D, H, W); `grad_output`: (N, C_out, D_out, H_out, W_out); output: `weight_size`.

    Raises:
        RuntimeError: `grad_output` does not have the shape of the result of the convolution.

    Example:
        >>> nn.grad.conv3d_weight(torch.ones(1, 1, 5, 5, 5), (1, 1, 3, 3, 3), torch.ones(1, 1, 3, 3, 3)).shape
        torch.Size([1, 1, 3, 3, 3])
    """
    return _gradient(F.conv3d, (input, weight_size), 1, grad_output, (stride, padding, dilation, groups))
