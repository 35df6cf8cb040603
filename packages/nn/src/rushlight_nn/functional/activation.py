"""Activation functions."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight_core import Tensor

from .._core import core, operator

_relu = operator("relu")
_relu_ = operator("relu_")
_elu = operator("elu")
_leaky_relu = operator("leaky_relu")
_hardtanh = operator("hardtanh")
_hardswish = operator("hardswish")
_silu = operator("silu")
_softmax = operator("softmax")
_log_softmax = operator("log_softmax")

sigmoid = operator("sigmoid")
tanh = operator("tanh")
gelu = operator("gelu")
softplus = operator("softplus")


def _write_back(input: Tensor, result: Tensor) -> Tensor:
    """The in-place form of a function whose operator has none."""
    return input.copy_(result)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0), elementwise."""
    return _relu_(input) if inplace else _relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6), elementwise."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val], elementwise."""
    if min_val > max_val:
        raise ValueError(f"hardtanh(min_val, max_val): got {min_val} and {max_val}, needs min_val <= max_val")
    result = _hardtanh(input, min_val, max_val)
    return _write_back(input, result) if inplace else result


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha (e^x - 1) (Clevert et al. 2016)."""
    result = _elu(input, alpha)
    return _write_back(input, result) if inplace else result


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope · x."""
    result = _leaky_relu(input, negative_slope)
    return _write_back(input, result) if inplace else result


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x), also known as swish (Elfwing et al. 2017)."""
    return _write_back(input, _silu(input)) if inplace else _silu(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · relu6(x + 3) / 6 (Howard et al. 2019)."""
    return _write_back(input, _hardswish(input)) if inplace else _hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6, elementwise."""
    result = _hardtanh(input + 3.0, 0.0, 6.0) / 6.0
    return _write_back(input, result) if inplace else result


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(softplus(x)) (Misra 2020)."""
    result = input * tanh(softplus(input))
    return _write_back(input, result) if inplace else result


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), computed without overflow."""
    return -softplus(-input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|), elementwise."""
    return input / (1 + input.abs())


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a · sigmoid(b), where a and b are the halves of `input` along `dim` (Dauphin et al. 2017)."""
    if input.size(dim) % 2:
        raise RuntimeError(f"glu(input): dimension {dim} has size {input.size(dim)}, needs an even size")
    first, second = input.chunk(2, dim)
    return first * sigmoid(second)


def _implicit_dim(function: str, ndim: int) -> int:
    warnings.warn(f"{function}: say which dimension, dim=...; guessing it is deprecated", stacklevel=3)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """e^x / sum(e^x) along `dim`; with `dtype` the input is converted first."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim())
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax of -x."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim())
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along `dim`, computed without overflow; with `dtype` the input is converted first."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim())
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the relaxed categorical distribution with log-probabilities `logits` (Jang et al. 2017).

    They need not be normalised. With `hard` the sample is one-hot, with the gradient of the relaxed one.
    `eps` is accepted and ignored.
    """
    uniform = core.rand_like(logits).clamp(min=1e-20)
    soft = softmax((logits - (-uniform.log()).clamp(min=1e-20).log()) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    return core.zeros_like(soft).scatter(dim, index, 1.0) - soft.detach() + soft
