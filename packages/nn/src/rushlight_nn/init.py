"""Filling tensors with starting values.

Every function writes into its tensor, outside autograd, and returns it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import wraps

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from ._typing import Any

_GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which weights in front of `nonlinearity` are scaled to keep the variance of its output.

    `param` is the negative slope of "leaky_relu", 0.01 by default.
    """
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        if isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"calculate_gain(param): got {param!r}, needs the negative slope as a number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity not in _GAINS:
        known = ", ".join([*_GAINS, "leaky_relu"])
        raise ValueError(f"calculate_gain(nonlinearity): got {nonlinearity!r}, needs one of {known}")
    return _GAINS[nonlinearity]


def _outside_autograd(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Tensor:
        with core.no_grad():
            return function(*args, **kwargs)

    return overridable(wrapper)


def _fans(function: str, tensor: Tensor) -> tuple[int, int]:
    """Return how many inputs and outputs one unit of a weight (out, in, *kernel) is connected to."""
    if tensor.dim() < 2:
        raise ValueError(
            f"{function}(tensor): got {tensor.dim()} dimensions, needs at least 2 (out, in, ...)"
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """By this name programs ask for a weight's numbers of inputs and outputs."""
    return _fans("_calculate_fan_in_and_fan_out", tensor)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ("fan_in", "fan_out")
    name = mode.lower()
    if name not in modes:
        raise ValueError(f"_calculate_correct_fan(mode): got {mode!r}, needs 'fan_in' or 'fan_out'")
    return _fans("_calculate_correct_fan", tensor)[modes.index(name)]


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Any = None) -> Tensor:
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Any = None) -> Tensor:
    return normal_(tensor, mean, std, generator)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> Tensor:
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    return constant_(tensor, val)


def _is_empty(function: str, tensor: Tensor) -> bool:
    if tensor.numel():
        return False
    warnings.warn(f"{function}: the tensor has no elements, nothing to do", stacklevel=4)
    return True


@_outside_autograd
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform over [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@_outside_autograd
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with this mean and standard deviation."""
    return tensor.normal_(mean, std, generator=generator)


@_outside_autograd
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill `tensor` with normal numbers of `mean` and `std`, conditioned on lying in [a, b].

    Numbers are rejected until all lie there: those of the whole normal distribution where more than 0.3 of it do, and
    else uniform ones, each kept with the ratio of the density to its largest value in [a, b].

    Raises:
        ValueError: `a` is not below `b`, or `std` is not positive.
    """
    if a >= b or std <= 0:
        raise ValueError(f"trunc_normal_(a, b, std): got {a}, {b} and {std}, needs a < b and std > 0")
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"trunc_normal_: the mean {mean} is more than two standard deviations outside [{a}, {b}]; "
            "far in the tail the distribution may be off",
            stacklevel=3,
        )
    cdf_a, cdf_b = (math.erf((x - mean) / (std * math.sqrt(2.0))) / 2.0 for x in (a, b))
    if cdf_b - cdf_a > 0.3:
        _reject_normal(tensor, mean, std, a, b, generator)
    else:
        _reject_uniform(tensor, mean, std, a, b, generator)
    return tensor


def _reject_normal(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> None:
    low, high = (tensor.new_tensor(bound, device="cpu").item() for bound in (a, b))  # as `tensor` holds them
    tensor.normal_(mean, std, generator=generator)
    while (outside := (tensor < low) | (tensor > high)).any():
        tensor.copy_(
            core.where(outside, core.empty_like(tensor).normal_(mean, std, generator=generator), tensor)
        )


def _reject_uniform(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> None:
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2

    def rejected(candidates: Tensor) -> Tensor:
        log_density = ((candidates - mean) / std).square().mul_(-0.5).sub_(log_peak)
        return core.empty_like(tensor).uniform_(generator=generator).log_() > log_density

    pending = rejected(tensor.uniform_(a, b, generator=generator))
    while pending.any():
        candidates = core.empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(core.where(pending, candidates, tensor))
        pending = pending & rejected(candidates)


@_outside_autograd
def constant_(tensor: Tensor, val: float) -> Tensor:
    """`val` everywhere."""
    return tensor.fill_(val)


@_outside_autograd
def ones_(tensor: Tensor) -> Tensor:
    """One everywhere."""
    return tensor.fill_(1.0)


@_outside_autograd
def zeros_(tensor: Tensor) -> Tensor:
    """Zero everywhere."""
    return tensor.zero_()


@_outside_autograd
def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix, as far as the 2-d `tensor` reaches."""
    if tensor.dim() != 2:
        raise ValueError(f"eye_(tensor): got {tensor.dim()} dimensions, needs 2")
    return tensor.copy_(core.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@_outside_autograd
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution weight (out, in, *kernel) that passes its input on, in each of `groups`."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError(f"dirac_(tensor): got {tensor.dim()} dimensions, needs 3, 4 or 5 (out, in, *kernel)")
    outputs, inputs = tensor.shape[0], tensor.shape[1]
    if groups < 1 or outputs % groups:
        raise ValueError(f"dirac_(groups): {outputs} output channels cannot be split into {groups} groups")
    middle = tuple(size // 2 for size in tensor.shape[2:])
    tensor.zero_()
    per_group = outputs // groups
    for group in range(groups):
        for channel in range(min(per_group, inputs)):
            tensor[(group * per_group + channel, channel, *middle)] = 1.0
    return tensor


@_outside_autograd
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform with variance 2 gain² / (fan_in + fan_out) (Glorot and Bengio 2010)."""
    fan_in, fan_out = _fans("xavier_uniform_", tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out)) if tensor.numel() else 0.0
    return tensor.uniform_(-bound, bound, generator=generator)


@_outside_autograd
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with variance 2 gain² / (fan_in + fan_out) (Glorot and Bengio 2010)."""
    fan_in, fan_out = _fans("xavier_normal_", tensor)
    std = gain * math.sqrt(2.0 / (fan_in + fan_out)) if tensor.numel() else 1.0
    return tensor.normal_(0.0, std, generator=generator)


def _kaiming_std(function: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    modes = ("fan_in", "fan_out")
    name = mode.lower() if isinstance(mode, str) else mode
    if name not in modes:
        raise ValueError(f"{function}(mode): got {mode!r}, needs 'fan_in' or 'fan_out'")
    return calculate_gain(nonlinearity, a) / math.sqrt(_fans(function, tensor)[modes.index(name)])


@_outside_autograd
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Uniform with variance gain² / fan (He et al. 2015).

    This keeps the variance of activations (mode "fan_in") or of gradients ("fan_out") through layers of
    `nonlinearity`; `a` is the negative slope of "leaky_relu".
    """
    if _is_empty("kaiming_uniform_", tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return tensor.uniform_(-bound, bound, generator=generator)


@_outside_autograd
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """The normal form of :func:`kaiming_uniform_`."""
    if _is_empty("kaiming_normal_", tensor):
        return tensor
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return tensor.normal_(0.0, std, generator=generator)


@_outside_autograd
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """`gain` times a uniformly random (semi-)orthogonal matrix, dimensions after the first taken as one
    (Saxe et al. 2014).
    """
    if tensor.dim() < 2:
        raise ValueError(f"orthogonal_(tensor): got {tensor.dim()} dimensions, needs at least 2")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    wide = core.float64 if tensor.dtype == core.float64 else core.float32
    drawn = core.empty(rows, columns, dtype=wide, device=tensor.device).normal_(0.0, 1.0, generator=generator)
    matrix = drawn if rows <= columns else drawn.t().contiguous()
    _make_rows_orthonormal(matrix)
    return tensor.copy_((matrix if rows <= columns else matrix.t()).reshape(tensor.shape)).mul_(gain)


def _make_rows_orthonormal(matrix: Tensor) -> None:
    """Gram and Schmidt's method on blocks of rows, each step done twice: then rounding errors do not add up
    (Giraud et al. 2005)."""
    block = 32
    for begin in range(0, matrix.shape[0], block):
        done, rows = matrix[:begin], matrix[begin : begin + block]
        for _ in range(2):
            rows -= rows @ done.t() @ done
            for i in range(rows.shape[0]):
                row = rows[i]
                row -= rows[:i].t() @ (rows[:i] @ row)
                row /= row.norm()


@_outside_autograd
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal, with the fraction `sparsity` of every column of the 2-d `tensor` set to zero (Martens 2010)."""
    if tensor.dim() != 2:
        raise ValueError(f"sparse_(tensor): got {tensor.dim()} dimensions, needs 2")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0.0, std, generator=generator)
    for column in range(columns):
        chosen = core.randperm(rows, generator=generator, device=tensor.device)[:zeros]
        tensor[chosen, column] = 0.0
    return tensor


# PyTorch's names of before 0.4, when only what ends in an underscore was to write into its argument.
_DEPRECATED = (
    "constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse", "uniform",
    "xavier_normal", "xavier_uniform",
)  # fmt: skip


def __getattr__(name: str) -> Callable[..., Tensor]:
    if name not in _DEPRECATED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    meant: Callable[..., Tensor] = globals()[name + "_"]

    @wraps(meant)
    def deprecated(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"nn.init.{name} is deprecated: write nn.init.{name}_", FutureWarning, stacklevel=2)
        return meant(*args, **kwargs)

    return deprecated


__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]
