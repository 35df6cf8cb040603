"""Activation functions."""

from __future__ import annotations

import warnings

from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import core, operator
from .._typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight_core import celu_ as celu_
    from rushlight_core import elu_ as elu_
    from rushlight_core import gelu as gelu
    from rushlight_core import glu as glu
    from rushlight_core import hardshrink as hardshrink
    from rushlight_core import hardtanh_ as hardtanh_
    from rushlight_core import leaky_relu_ as leaky_relu_
    from rushlight_core import log_sigmoid as logsigmoid
    from rushlight_core import prelu as prelu
    from rushlight_core import relu_ as relu_
    from rushlight_core import rrelu_ as rrelu_
    from rushlight_core import selu_ as selu_
    from rushlight_core import sigmoid as sigmoid
    from rushlight_core import softplus as softplus
    from rushlight_core import softshrink as softshrink
    from rushlight_core import softsign as softsign
    from rushlight_core import tanh as tanh
    from rushlight_core import tanhshrink as tanhshrink
    from rushlight_core import threshold_ as threshold_
else:
    relu_ = operator("relu_")
    threshold_ = operator("threshold_")
    hardtanh_ = operator("hardtanh_")
    leaky_relu_ = operator("leaky_relu_")
    elu_ = operator("elu_")
    selu_ = operator("selu_")
    celu_ = operator("celu_")
    rrelu_ = operator("rrelu_")
    sigmoid = operator("sigmoid")
    tanh = operator("tanh")
    gelu = operator("gelu")
    softplus = operator("softplus")
    logsigmoid = operator("log_sigmoid")
    softsign = operator("softsign")
    softshrink = operator("softshrink")
    hardshrink = operator("hardshrink")
    tanhshrink = operator("tanhshrink")
    prelu = operator("prelu")
    glu = operator("glu")

_relu = operator("relu")
_relu6, _relu6_ = operator("relu6"), operator("relu6_")
_threshold = operator("threshold")
_hardtanh = operator("hardtanh")
_leaky_relu = operator("leaky_relu")
_elu = operator("elu")
_selu = operator("selu")
_celu = operator("celu")
_silu, _silu_ = operator("silu"), operator("silu_")
_mish, _mish_ = operator("mish"), operator("mish_")
_hardswish, _hardswish_ = operator("hardswish"), operator("hardswish_")
_hardsigmoid, _hardsigmoid_ = operator("hardsigmoid"), operator("hardsigmoid_")
_rrelu = operator("rrelu")
_softmax = operator("softmax")
_log_softmax = operator("log_softmax")


@overridable
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the rectified linear unit, ``max(x, 0)``, of each element.

    Args:
        input: the tensor.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.relu(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return relu_(input) if inplace else _relu(input)


@overridable
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``min(max(x, 0), 6)`` of each element.

    Args:
        input: the tensor.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.relu6(torch.tensor([-1.0, 4.0, 9.0]))
        tensor([0., 4., 6.])
    """
    return _relu6_(input) if inplace else _relu6(input)


@overridable
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Keep the elements that are above `threshold`, and replace all other elements by `value`.

    Args:
        input: the tensor.
        threshold: the threshold.
        value: the value that replaces all other elements.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.threshold(torch.tensor([0.1, 0.5, 0.9]), 0.5, 20.0)
        tensor([20.0000, 20.0000,  0.9000])
    """
    return threshold_(input, threshold, value) if inplace else _threshold(input, threshold, value)


@overridable
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Limit each element to the range from `min_val` to `max_val`.

    Args:
        input: the tensor.
        min_val: lower limit.
        max_val: upper limit.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Raises:
        ValueError: `min_val` is above `max_val`.

    Example:
        >>> F.hardtanh(torch.tensor([-3.0, 0.5, 3.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh(min_val, max_val): got {min_val} and {max_val}, needs min_val <= max_val")
    return hardtanh_(input, min_val, max_val) if inplace else _hardtanh(input, min_val, max_val)


@overridable
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else ``negative_slope · x``.

    Args:
        input: the tensor.
        negative_slope: factor of negative elements.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
        tensor([-0.1000,  2.0000])
    """
    return leaky_relu_(input, negative_slope) if inplace else _leaky_relu(input, negative_slope)


@overridable
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else ``alpha · (e^x - 1)`` (Clevert et al. 2016).

    Args:
        input: the tensor.
        alpha: the result tends to -alpha as x tends to minus infinity.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.elu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.6321,  0.0000,  1.0000])
    """
    return elu_(input, alpha) if inplace else _elu(input, alpha)


@overridable
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the scaled exponential linear unit, which keeps activations normalised (Klambauer et al. 2017).

    The result is ``scale · x`` where x > 0, else ``scale · alpha · (e^x - 1)``, with scale = 1.0507 and alpha = 1.6733.

    Args:
        input: the tensor.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.selu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-1.1113,  0.0000,  1.0507])
    """
    return selu_(input) if inplace else _selu(input)


@overridable
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else ``alpha · (e^(x / alpha) - 1)`` (Barron 2017).

    Args:
        input: the tensor.
        alpha: the result tends to -alpha as x tends to minus infinity.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.celu(torch.tensor([-1.0, 0.0, 1.0]), alpha=0.5)
        tensor([-0.4323,  0.0000,  1.0000])
    """
    return celu_(input, alpha) if inplace else _celu(input, alpha)


@overridable
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x · sigmoid(x)``, the sigmoid linear unit or swish, of each element (Elfwing et al. 2017).

    Args:
        input: the tensor.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.silu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.2689,  0.0000,  0.7311])
    """
    return _silu_(input) if inplace else _silu(input)


@overridable
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x · tanh(softplus(x))`` of each element (Misra 2020).

    Args:
        input: the tensor.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.mish(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.3034,  0.0000,  0.8651])
    """
    return _mish_(input) if inplace else _mish(input)


@overridable
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x · relu6(x + 3) / 6`` of each element, an approximation of SiLU (Howard et al. 2019).

    Args:
        input: the tensor.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.hardswish(torch.tensor([-4.0, 1.0, 4.0]))
        tensor([-0.0000, 0.6667, 4.0000])
    """
    return _hardswish_(input) if inplace else _hardswish(input)


@overridable
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``relu6(x + 3) / 6`` of each element, an approximation of the sigmoid.

    Args:
        input: the tensor.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.hardsigmoid(torch.tensor([-4.0, 0.0, 4.0]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    return _hardsigmoid_(input) if inplace else _hardsigmoid(input)


@overridable
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return x where x > 0, else x times a factor drawn uniformly from `lower` to `upper` (Xu et al. 2015).

    Args:
        input: the tensor.
        lower: the smallest factor.
        upper: the largest factor.
        training: whether to draw a factor for each element; if False, the factor is the mean of `lower` and `upper`.
        inplace: overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  2.0000])
    """
    return rrelu_(input, lower, upper, training) if inplace else _rrelu(input, lower, upper, training)


def _implicit_dim(function: str, ndim: int) -> int:
    warnings.warn(f"{function}: implicit dimension choice is deprecated; pass dim=", stacklevel=3)
    return 0 if ndim in (0, 1, 3) else 1


@overridable
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return ``e^x / sum(e^x)`` along a dimension, computed without overflow.

    Args:
        input: the tensor.
        dim: the dimension along which the results add up to 1. If None, the dimension is 0 for tensors of 0, 1 or 3
            dimensions and 1 for other tensors, and a warning is issued.
        _stacklevel: ignored.
        dtype: dtype to which the input is converted first, such as float32 for a float16 input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.softmax(torch.tensor([0.0, 1.0, 1000.0]), dim=0)
        tensor([0., 0., 1.])
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.dim())
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


@overridable
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the softmax of ``-input`` along a dimension.

    Args:
        input: the tensor.
        dim: the dimension along which the results add up to 1. If None, the dimension is 0 for tensors of 0, 1 or 3
            dimensions and 1 for other tensors, and a warning is issued.
        _stacklevel: ignored.
        dtype: dtype to which the input is converted first, such as float32 for a float16 input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.softmin(torch.tensor([0.0, 1.0]), dim=0)
        tensor([0.7311, 0.2689])
    """
    if dim is None:
        dim = _implicit_dim("softmin", input.dim())
    return softmax(-input, dim, dtype=dtype)


@overridable
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the logarithm of the softmax along a dimension, computed without overflow.

    Args:
        input: the tensor.
        dim: the dimension along which the probabilities add up to 1. If None, the dimension is 0 for tensors of 0, 1 or 3
            dimensions and 1 for other tensors, and a warning is issued.
        _stacklevel: ignored.
        dtype: dtype to which the input is converted first, such as float32 for a float16 input.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> F.log_softmax(torch.tensor([0.0, 1000.0]), dim=0)
        tensor([-1000.,     0.])
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim())
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


@overridable
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draw samples from the Gumbel-softmax distribution with log-probabilities `logits` (Jang et al. 2017).

    Args:
        logits: unnormalised log-probabilities.
        tau: the temperature. The smaller the temperature is, the closer the samples are to one-hot vectors.
        hard: return one-hot vectors, but differentiate them as if they were the soft samples.
        eps: accepted and ignored.
        dim: the dimension of the classes.

    Shape:
        - Input and output: (*), any shape.

    Example:
        >>> samples = F.gumbel_softmax(torch.randn(5, 3), hard=True)
        >>> samples.sum(1)  # one class is chosen in each row
        tensor([1., 1., 1., 1., 1.])
    """
    exponential = core.empty_like(logits).exponential_()
    gumbel = -exponential.clamp_(min=core.finfo(logits.dtype).tiny).log()
    soft = softmax((logits + gumbel) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    return core.zeros_like(soft).scatter(dim, index, 1.0) - soft.detach() + soft
