"""Linear and bilinear layers."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor

from .. import init
from .._typing import Any
from ..functional import bilinear, linear
from ..module import Module
from ..parameter import Parameter


class Identity(Module):
    """A layer that returns its input unchanged.

    The constructor accepts and ignores all arguments, so that the layer can replace any other layer.

    Shape:
        - Input: any shape.
        - Output: the input itself.

    Example:
        >>> layer = nn.Identity(54, unused_argument=0.1)
        >>> layer(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """A fully connected layer: ``x Wᵀ + b`` on the last dimension.

    Weight and bias are initialised uniformly between ±1 / sqrt(in_features).

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the output.
        bias: whether there is a bias b.
        device: device of the parameters.
        dtype: dtype of the parameters. The input must have the same dtype.

    Shape:
        - Input: (*, in_features).
        - Output: (*, out_features).
        - `weight`: (out_features, in_features); `bias`: (out_features).

    Example:
        >>> layer = nn.Linear(20, 30)
        >>> layer(torch.randn(128, 20)).shape
        torch.Size([128, 30])
    """

    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(core.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(core.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values for the parameters."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A :class:`Linear` layer that tools for quantization must not replace.

    :class:`MultiheadAttention` uses this class for its last layer `out_proj`. `MultiheadAttention` reads the weight and bias
    of `out_proj` without calling the layer, so a quantized layer in its place would not be called.

    Example:
        >>> nn.MultiheadAttention(4, 2).out_proj
        NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)
    """


class Bilinear(Module):
    """A layer that is linear in each of two inputs: element k of the output is ``x1ᵀ W_k x2 + b_k``.

    Weight and bias are initialised uniformly between ±1 / sqrt(in1_features).

    Args:
        in1_features: size of the last dimension of the first input.
        in2_features: size of the last dimension of the second input.
        out_features: size of the last dimension of the output.
        bias: whether there is a bias b.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Inputs: (*, in1_features) and (*, in2_features), with the same leading dimensions.
        - Output: (*, out_features).
        - `weight`: (out_features, in1_features, in2_features); `bias`: (out_features).

    Raises:
        ValueError: `in1_features` is not positive.

    Example:
        >>> layer = nn.Bilinear(20, 30, 40)
        >>> layer(torch.randn(128, 20), torch.randn(128, 30)).shape
        torch.Size([128, 40])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear(in1_features): got {in1_features}, needs a positive number")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(core.empty(shape, device=device, dtype=dtype))
        values = core.empty(out_features, device=device, dtype=dtype) if bias else None
        self.register_parameter("bias", None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values for the parameters."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
