"""Activation layers."""

from __future__ import annotations

import warnings

import rushlight_core as core
from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..module import Module
from ..parameter import Parameter


class _InPlace(Module):
    """The base class of activations whose only argument is `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """The rectified linear unit, ``max(x, 0)``, of each element.

    Args:
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.ReLU()(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class ReLU6(_InPlace):
    """The rectified linear unit with an upper limit, ``min(max(x, 0), 6)``, of each element.

    Args:
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.ReLU6()(torch.tensor([-1.0, 4.0, 9.0]))
        tensor([0., 4., 6.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)


class SELU(_InPlace):
    """The scaled exponential linear unit: ``scale · x`` where x > 0, else ``scale · alpha · (e^x - 1)``.

    With scale = 1.0507 and alpha = 1.6733, the mean of the activations stays near 0 and their variance near 1
    across many layers (Klambauer et al. 2017). Use :class:`AlphaDropout` instead of :class:`Dropout`, because
    AlphaDropout preserves this mean and variance.

    Args:
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.SELU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-1.1113,  0.0000,  1.0507])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_InPlace):
    """The sigmoid linear unit, or swish, ``x · sigmoid(x)``, of each element (Elfwing et al. 2017).

    Args:
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.SiLU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.2689,  0.0000,  0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Hardswish(_InPlace):
    """A piecewise approximation of SiLU, ``x · relu6(x + 3) / 6``, of each element (Howard et al. 2019).

    Args:
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Hardswish()(torch.tensor([-4.0, 1.0, 4.0]))
        tensor([-0.0000, 0.6667, 4.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_InPlace):
    """A piecewise linear approximation of the sigmoid, ``relu6(x + 3) / 6``, of each element.

    Args:
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 4.0]))
        tensor([0.0000, 0.5000, 1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Mish(_InPlace):
    """The activation ``x · tanh(softplus(x))`` of each element (Misra 2020).

    Args:
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Mish()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.3034,  0.0000,  0.8651])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardtanh(Module):
    """The hard tanh: limit each element to the range from `min_val` to `max_val`.

    Args:
        min_val: lower limit.
        max_val: upper limit.
        inplace: overwrite the input.
        min_value, max_value: deprecated names of the limits.

    Shape:
        - Input and output: (*), any shape.

    Raises:
        ValueError: `min_val` is not below `max_val`.

    Example:
        >>> nn.Hardtanh(-2, 2)(torch.tensor([-3.0, 0.5, 3.0]))
        tensor([-2.0000,  0.5000,  2.0000])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None or max_value is not None:
            warnings.warn(
                "Hardtanh: min_value and max_value are deprecated, use min_val and max_val",
                DeprecationWarning,
                stacklevel=2,
            )
            min_val = min_val if min_value is None else min_value
            max_val = max_val if max_value is None else max_value
        if not min_val < max_val:
            raise ValueError(
                f"Hardtanh(min_val, max_val): got {min_val} and {max_val}, needs min_val < max_val"
            )
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class LeakyReLU(Module):
    """The leaky rectified linear unit: x where x > 0, else ``negative_slope · x``.

    Args:
        negative_slope: factor for negative elements.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
        tensor([-0.1000,  2.0000])
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """The rectified linear unit with a learned slope for negative elements (He et al. 2015).

    The result is x where x > 0, else ``weight · x``.

    Args:
        num_parameters: 1 for a single slope, or the number of channels for one slope per channel.
        init: the initial value of the slopes.
        device: device of the slopes.
        dtype: dtype of the slopes.

    Shape:
        - Input and output: (N, C, *), or any shape if `num_parameters` is 1.
        - `weight`: (num_parameters).

    Example:
        >>> nn.PReLU()(torch.tensor([-1.0, 2.0])).tolist()
        [-0.25, 2.0]
    """

    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(
            core.full((num_parameters,), init, device=device, dtype=dtype or core.get_default_dtype())
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """The rectified linear unit with a random slope for negative elements (Xu et al. 2015).

    In training mode, each negative element is multiplied by a number drawn uniformly from `lower` to `upper`.
    In evaluation mode, this number is the mean of `lower` and `upper`.

    Args:
        lower: smallest slope.
        upper: largest slope.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.RReLU(0.1, 0.3).eval()(torch.tensor([-1.0, 2.0]))
        tensor([-0.2000,  2.0000])
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class ELU(Module):
    """The exponential linear unit: x where x > 0, else ``alpha · (e^x - 1)`` (Clevert et al. 2016).

    Args:
        alpha: outputs tend to -alpha as x tends to minus infinity.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.ELU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.6321,  0.0000,  1.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(Module):
    """The continuously differentiable ELU: x where x > 0, else ``alpha · (e^(x / alpha) - 1)`` (Barron 2017).

    Args:
        alpha: outputs tend to -alpha as x tends to minus infinity.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.CELU(alpha=0.5)(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.4323,  0.0000,  1.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """Thresholding: replace each element that is not above a threshold by a constant.

    Args:
        threshold: the threshold.
        value: the constant.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Threshold(0.5, 20.0)(torch.tensor([0.1, 0.5, 0.9]))
        tensor([20.0000, 20.0000,  0.9000])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """The Gaussian error linear unit, ``x · Phi(x)``, where Phi is the standard normal CDF (Hendrycks and Gimpel 2016).

    Args:
        approximate: "none", or "tanh" for the approximation ``x / 2 · (1 + tanh(sqrt(2 / pi) · (x + 0.044715 · x³)))``.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.GELU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1587,  0.0000,  0.8413])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Sigmoid(Module):
    """The logistic sigmoid, ``1 / (1 + e^-x)``, of each element.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Sigmoid()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1192, 0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class LogSigmoid(Module):
    """The logarithm of the sigmoid, ``-log(1 + e^-x)``, of each element, computed without overflow.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.LogSigmoid()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-2.1269, -0.6931, -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent of each element.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Tanh()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7616,  0.0000,  0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Softsign(Module):
    """The activation ``x / (1 + |x|)`` of each element.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Softsign()(torch.tensor([-3.0, 0.0, 1.0]))
        tensor([-0.7500,  0.0000,  0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """The difference ``x - tanh(x)`` of each element.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Tanhshrink()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.2384,  0.0000,  0.2384])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(_Shrink):
    """Soft thresholding: move each element towards zero by `lambd`, or set it to zero if its magnitude is at most `lambd`.

    Args:
        lambd: the threshold, which must not be negative.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Softshrink()(torch.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Hardshrink(_Shrink):
    """Hard thresholding: replace the elements whose magnitude is at most `lambd` by zero.

    Args:
        lambd: the threshold.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Hardshrink()(torch.tensor([-1.0, 0.2, 2.0]))
        tensor([-1.,  0.,  2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softplus(Module):
    """A smooth approximation of ReLU, ``log(1 + e^(beta · x)) / beta``, of each element.

    Args:
        beta: the steepness; a larger value approximates ReLU more closely.
        threshold: where ``beta · x`` is above this value, the result is x, so that the exponential does not overflow.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Softplus()(torch.tensor([-1.0, 0.0, 100.0]))
        tensor([  0.3133,   0.6931, 100.0000])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class GLU(Module):
    """The gated linear unit, ``a · sigmoid(b)``, of the halves a and b of the input (Dauphin et al. 2017).

    Args:
        dim: the dimension along which the input is split into two halves.

    Shape:
        - Input: (*, n, *) with an even n in dimension `dim`.
        - Output: (*, n / 2, *).

    Example:
        >>> nn.GLU()(torch.tensor([[1.0, 2.0, 0.0, 0.0]]))
        tensor([[0.5000, 1.0000]])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """The softmax, ``e^x / sum(e^x)``, along one dimension.

    Args:
        dim: the dimension along which the results add up to 1. If None, the dimension is 0 for tensors of 0, 1 or 3
            dimensions and 1 for other tensors, and a warning is issued.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Softmax(dim=1)(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
        tensor([[0.5000, 0.5000],
                [0.2689, 0.7311]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class Softmin(_AlongDim):
    """The softmax of the negated input, along one dimension.

    Args:
        dim: the dimension along which the results add up to 1. If None, the dimension is 0 for tensors of 0, 1 or 3
            dimensions and 1 for other tensors, and a warning is issued.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.Softmin(dim=1)(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
        tensor([[0.5000, 0.5000],
                [0.7311, 0.2689]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class LogSoftmax(_AlongDim):
    """The logarithm of the softmax along one dimension, computed without overflow.

    Args:
        dim: the dimension along which the probabilities add up to 1. If None, the dimension is 0 for tensors of 0, 1 or 3
            dimensions and 1 for other tensors, and a warning is issued.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> nn.LogSoftmax(dim=1)(torch.tensor([[0.0, 0.0], [0.0, 1000.0]]))
        tensor([[-6.9315e-01, -6.9315e-01],
                [-1.0000e+03,  0.0000e+00]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    """The softmax over the channels of images, computed separately for each pixel.

    Shape:
        - Input and output: (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the input has neither 3 nor 4 dimensions.

    Example:
        >>> nn.Softmax2d()(torch.randn(1, 5, 2, 3)).sum(1)
        tensor([[[1.0000, 1.0000, 1.0000],
                 [1.0000, 1.0000, 1.0000]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d(input): got shape {tuple(input.shape)}, needs 3 or 4 dimensions")
        return F.softmax(input, -3)
