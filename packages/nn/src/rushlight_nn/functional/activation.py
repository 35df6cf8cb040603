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
    """max(x, 0), elementwise."""
    return relu_(input) if inplace else _relu(input)


@overridable
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6), elementwise."""
    return _relu6_(input) if inplace else _relu6(input)


@overridable
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value."""
    return threshold_(input, threshold, value) if inplace else _threshold(input, threshold, value)


@overridable
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val], elementwise."""
    if min_val > max_val:
        raise ValueError(f"hardtanh(min_val, max_val): got {min_val} and {max_val}, needs min_val <= max_val")
    return hardtanh_(input, min_val, max_val) if inplace else _hardtanh(input, min_val, max_val)


@overridable
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope · x."""
    return leaky_relu_(input, negative_slope) if inplace else _leaky_relu(input, negative_slope)


@overridable
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha (e^x - 1) (Clevert et al. 2016)."""
    return elu_(input, alpha) if inplace else _elu(input, alpha)


@overridable
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """A scaled ELU that keeps activations normalised (Klambauer et al. 2017)."""
    return selu_(input) if inplace else _selu(input)


@overridable
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha (e^(x / alpha) - 1) (Barron 2017)."""
    return celu_(input, alpha) if inplace else _celu(input, alpha)


@overridable
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x), also known as swish (Elfwing et al. 2017)."""
    return _silu_(input) if inplace else _silu(input)


@overridable
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(softplus(x)) (Misra 2020)."""
    return _mish_(input) if inplace else _mish(input)


@overridable
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · relu6(x + 3) / 6 (Howard et al. 2019)."""
    return _hardswish_(input) if inplace else _hardswish(input)


@overridable
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6, elementwise."""
    return _hardsigmoid_(input) if inplace else _hardsigmoid(input)


@overridable
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """x where x > 0, else x times a slope drawn from [lower, upper] (Xu et al. 2015).

    Without `training` the slope is their mean.
    """
    return rrelu_(input, lower, upper, training) if inplace else _rrelu(input, lower, upper, training)


def _implicit_dim(function: str, ndim: int) -> int:
    warnings.warn(f"{function}: say which dimension, dim=...; guessing it is deprecated", stacklevel=3)
    return 0 if ndim in (0, 1, 3) else 1


@overridable
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """e^x / sum(e^x) along `dim`; with `dtype` the input is converted first."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim())
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


@overridable
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax of -x."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim())
    return softmax(-input, dim, dtype=dtype)


@overridable
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along `dim`, computed without overflow; with `dtype` the input is converted first."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim())
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


@overridable
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Return a sample of the relaxed categorical distribution with log-probabilities `logits` (Jang et al. 2017).

    They need not be normalised. With `hard` the sample is one-hot, with the gradient of the relaxed one.
    `eps` is accepted and ignored.
    """
    exponential = core.empty_like(logits).exponential_()
    gumbel = -exponential.clamp_(min=core.finfo(logits.dtype).tiny).log()
    soft = softmax((logits + gumbel) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    return core.zeros_like(soft).scatter(dim, index, 1.0) - soft.detach() + soft
