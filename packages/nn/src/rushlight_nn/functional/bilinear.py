"""Bilinear maps: functions that are linear in each of two inputs."""

from __future__ import annotations

from functools import reduce

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core


@overridable
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x1ᵀ W_k x2 + b_k`` for every output feature k.

    Args:
        input1: the first input x1.
        input2: the second input x2.
        weight: the matrices W_k.
        bias: the biases b_k.

    Shape:
        - Inputs: (*, in1) and (*, in2), with the same leading dimensions.
        - `weight`: (out, in1, in2); `bias`: (out).
        - Output: (*, out).

    Raises:
        RuntimeError: the shapes of the arguments do not match.

    Example:
        >>> F.bilinear(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.eye(2).unsqueeze(0))  # the dot product
        tensor([11.])
    """
    if weight.dim() != 3 or (input1.shape[-1], input2.shape[-1]) != tuple(weight.shape[1:]):
        raise RuntimeError(
            f"bilinear(weight): got shape {tuple(weight.shape)}, needs (out, {input1.shape[-1]}, {input2.shape[-1]})"
        )
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(input1, input2): shapes {tuple(input1.shape)} and {tuple(input2.shape)} differ in a "
            "dimension other than the last"
        )
    device = weight.device.type
    if not core.is_autocast_enabled(device):
        return _contract(input1, input2, weight, bias)
    # `bilinear` is not in the list of operators that autocast runs in a lower precision, so autocast must not convert the
    # arguments of the matrix products below. An argument that was computed by an operator of the list may already have a
    # lower precision. All arguments are therefore converted to their widest dtype.
    arguments = [input1, input2, weight] if bias is None else [input1, input2, weight, bias]
    dtype = reduce(core.promote_types, (argument.dtype for argument in arguments))
    with core.autocast(device, enabled=False):
        return _contract(*(argument.to(dtype) for argument in arguments))


def _contract(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    # Contract the weight with input1 in one matrix product for all rows. The result has the shape (rows, out, in2).
    out, first, second = weight.shape
    rows = input1.reshape(-1, first) @ weight.transpose(0, 1).reshape(first, out * second)
    result = rows.reshape(-1, out, second) @ input2.reshape(-1, second, 1)
    result = result.reshape(*input1.shape[:-1], out)
    return result if bias is None else result + bias
