"""Functions that fill tensors with initial values.

Each function fills a tensor in place, without recording gradients, and returns the tensor.
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
    """Return the gain of a nonlinearity: weights scaled by this factor preserve the variance of activations.

    Args:
        nonlinearity: "linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu", or the name of a convolution, such as
            "conv2d" or "conv_transpose2d".
        param: the negative slope of "leaky_relu", 0.01 by default.

    Raises:
        ValueError: the nonlinearity is unknown, or `param` is not a number.

    Example:
        >>> nn.init.calculate_gain("leaky_relu", 0.2)  # sqrt(2 / (1 + 0.2²))
        1.3867504905630728
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
    """Return the fan-in and the fan-out of a weight of shape (out, in, *kernel)."""
    if tensor.dim() < 2:
        raise ValueError(
            f"{function}(tensor): got {tensor.dim()} dimensions, needs at least 2 (out, in, ...)"
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the fan-in and the fan-out of a weight. Programs for PyTorch call this function, although it is private."""
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
    """Fill a tensor with numbers drawn uniformly from [a, b).

    Args:
        tensor: the tensor, which is returned.
        a: lower limit.
        b: upper limit.
        generator: the generator to draw from; the global generator by default.

    Shape:
        - Tensor: (*), any shape; floating point.

    Example:
        >>> w = nn.init.uniform_(torch.empty(3, 5), a=-1.0, b=1.0)
        >>> bool(((w >= -1) & (w < 1)).all())
        True
    """
    return tensor.uniform_(a, b, generator=generator)


@_outside_autograd
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill a tensor with normally distributed numbers.

    Args:
        tensor: the tensor, which is returned.
        mean: mean of the distribution.
        std: standard deviation of the distribution.
        generator: the generator to draw from; the global generator by default.

    Shape:
        - Tensor: (*), any shape; floating point.

    Example:
        >>> w = nn.init.normal_(torch.empty(100, 100), std=0.02)
        >>> abs(float(w.std()) - 0.02) < 0.001
        True
    """
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
    """Fill a tensor with normally distributed numbers that lie in [a, b].

    The function uses rejection sampling. If more than 30 % of the normal distribution lies in [a, b], the
    function draws from the normal distribution, and redraws the numbers outside of the interval. If at most
    30 % lies in [a, b], the function draws uniformly from [a, b], and accepts a number with a probability
    equal to its normal density divided by the largest normal density in [a, b].

    Args:
        tensor: the tensor, which is returned.
        mean: mean of the normal distribution before the truncation.
        std: standard deviation of the normal distribution before the truncation.
        a: lower limit.
        b: upper limit.
        generator: the generator to draw from; the global generator by default.

    Shape:
        - Tensor: (*), any shape; floating point.

    Raises:
        ValueError: `a` is not below `b`, or `std` is not positive.

    Example:
        >>> w = nn.init.trunc_normal_(torch.empty(3, 5), std=0.02, a=-0.04, b=0.04)
        >>> bool((w.abs() <= 0.04).all())
        True
    """
    if a >= b or std <= 0:
        raise ValueError(f"trunc_normal_(a, b, std): got {a}, {b} and {std}, needs a < b and std > 0")
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"trunc_normal_: the mean {mean} is more than two standard deviations outside [{a}, {b}]; "
            "all values come from the tail of the distribution",
            stacklevel=3,
        )
    cdf_a, cdf_b = (math.erf((x - mean) / (std * math.sqrt(2.0))) / 2.0 for x in (a, b))
    if cdf_b - cdf_a > 0.3:
        _reject_normal(tensor, mean, std, a, b, generator)
    else:
        _reject_uniform(tensor, mean, std, a, b, generator)
    return tensor


def _reject_normal(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> None:
    low, high = (tensor.new_tensor(bound, device="cpu").item() for bound in (a, b))  # rounded to the dtype
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
    """Fill a tensor with the value `val`.

    Args:
        tensor: the tensor, which is returned.
        val: the value.

    Shape:
        - Tensor: (*), any shape.

    Example:
        >>> nn.init.constant_(torch.empty(2), 0.3)
        tensor([0.3000, 0.3000])
    """
    return tensor.fill_(val)


@_outside_autograd
def ones_(tensor: Tensor) -> Tensor:
    """Fill a tensor with ones.

    Args:
        tensor: the tensor, which is returned.

    Shape:
        - Tensor: (*), any shape.

    Example:
        >>> nn.init.ones_(torch.empty(2))
        tensor([1., 1.])
    """
    return tensor.fill_(1.0)


@_outside_autograd
def zeros_(tensor: Tensor) -> Tensor:
    """Fill a tensor with zeros.

    Args:
        tensor: the tensor, which is returned.

    Shape:
        - Tensor: (*), any shape.

    Example:
        >>> nn.init.zeros_(torch.empty(2))
        tensor([0., 0.])
    """
    return tensor.zero_()


@_outside_autograd
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity: ones on the diagonal, zeros elsewhere.

    Args:
        tensor: the matrix, which is returned.

    Shape:
        - Tensor: (rows, columns).

    Raises:
        ValueError: the tensor does not have two dimensions.

    Example:
        >>> nn.init.eye_(torch.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.dim() != 2:
        raise ValueError(f"eye_(tensor): got {tensor.dim()} dimensions, needs 2")
    return tensor.copy_(core.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@_outside_autograd
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that the convolution preserves as many input channels as possible.

    Args:
        tensor: the weight, which is returned.
        groups: number of groups of the convolution. Each group preserves the input channels of this group.

    Shape:
        - Tensor: (out, in, *kernel) with a kernel of one, two or three dimensions.

    Raises:
        ValueError: the tensor does not have 3, 4 or 5 dimensions, or the output channels cannot be split into `groups` equal
            groups.

    Example:
        >>> w = nn.init.dirac_(torch.empty(2, 2, 3))
        >>> x = torch.randn(1, 2, 5)
        >>> torch.equal(F.conv1d(x, w, padding=1), x)
        True
    """
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
    """Fill a weight with uniformly distributed numbers of variance 2 · gain² / (fan_in + fan_out) (Glorot and Bengio 2010).

    The numbers lie within ±gain · sqrt(6 / (fan_in + fan_out)).

    Args:
        tensor: the weight, which is returned.
        gain: a factor; see :func:`calculate_gain`.
        generator: the generator to draw from; the global generator by default.

    Shape:
        - Tensor: (out, in, *kernel); fan_in = in · k and fan_out = out · k for a kernel of k elements.

    Raises:
        ValueError: the tensor has fewer than two dimensions.

    Example:
        >>> w = nn.init.xavier_uniform_(torch.empty(3, 3))
        >>> bool((w.abs() <= 1).all())  # sqrt(6 / (3 + 3)) is 1
        True
    """
    fan_in, fan_out = _fans("xavier_uniform_", tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out)) if tensor.numel() else 0.0
    return tensor.uniform_(-bound, bound, generator=generator)


@_outside_autograd
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill a weight with normally distributed numbers of variance 2 · gain² / (fan_in + fan_out) (Glorot and Bengio 2010).

    Args:
        tensor: the weight, which is returned.
        gain: a factor; see :func:`calculate_gain`.
        generator: the generator to draw from; the global generator by default.

    Shape:
        - Tensor: (out, in, *kernel); fan_in = in · k and fan_out = out · k for a kernel of k elements.

    Raises:
        ValueError: the tensor has fewer than two dimensions.

    Example:
        >>> w = nn.init.xavier_normal_(torch.empty(100, 300))
        >>> abs(float(w.std()) - (2 / 400) ** 0.5) < 0.005
        True
    """
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
    """Fill a weight with uniformly distributed numbers of variance gain² / fan (He et al. 2015).

    `mode` selects whether fan is fan_in or fan_out.

    Args:
        tensor: the weight, which is returned.
        a: the negative slope of "leaky_relu".
        mode: "fan_in" preserves the variance of activations, and "fan_out" preserves the variance of gradients.
        nonlinearity: the nonlinearity after the layer; see :func:`calculate_gain`.
        generator: the generator to draw from; the global generator by default.

    Shape:
        - Tensor: (out, in, *kernel); fan_in = in · k and fan_out = out · k for a kernel of k elements.

    Raises:
        ValueError: the tensor has fewer than two dimensions, or `mode` or `nonlinearity` is unknown.

    Example:
        >>> w = nn.init.kaiming_uniform_(torch.empty(3, 6), nonlinearity="relu")
        >>> bool((w.abs() <= 1).all())  # sqrt(3) · sqrt(2) / sqrt(6) is 1
        True
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
    """Fill a weight with normally distributed numbers of variance gain² / fan (He et al. 2015).

    `mode` selects whether fan is fan_in or fan_out.

    Args:
        tensor: the weight, which is returned.
        a: the negative slope of "leaky_relu".
        mode: "fan_in" preserves the variance of activations, and "fan_out" preserves the variance of gradients.
        nonlinearity: the nonlinearity after the layer; see :func:`calculate_gain`.
        generator: the generator to draw from; the global generator by default.

    Shape:
        - Tensor: (out, in, *kernel); fan_in = in · k and fan_out = out · k for a kernel of k elements.

    Raises:
        ValueError: the tensor has fewer than two dimensions, or `mode` or `nonlinearity` is unknown.

    Example:
        >>> w = nn.init.kaiming_normal_(torch.empty(300, 100), mode="fan_out", nonlinearity="relu")
        >>> abs(float(w.std()) - (2 / 300) ** 0.5) < 0.005
        True
    """
    if _is_empty("kaiming_normal_", tensor):
        return tensor
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return tensor.normal_(0.0, std, generator=generator)


@_outside_autograd
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill a weight with a random orthogonal matrix, times `gain` (Saxe et al. 2014).

    A matrix with fewer rows than columns has orthonormal rows; any other matrix has orthonormal columns.

    Args:
        tensor: the weight, which is returned.
        gain: the factor by which the orthogonal matrix is multiplied.
        generator: the generator to draw from; the global generator by default.

    Shape:
        - Tensor: (rows, *); the dimensions after the first are flattened into columns.

    Raises:
        ValueError: the tensor has fewer than two dimensions.

    Example:
        >>> w = nn.init.orthogonal_(torch.empty(3, 5))
        >>> torch.allclose(w @ w.T, torch.eye(3), atol=1e-5)
        True
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
    """Orthonormalise the rows in place, in blocks, by the Gram-Schmidt process.

    Each orthogonalisation is done twice, so that rounding errors do not accumulate (Giraud et al. 2005).
    """
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
    """Fill a matrix with normally distributed numbers, and set a fraction of each column to zero (Martens 2010).

    Args:
        tensor: the matrix, which is returned.
        sparsity: the fraction of each column that is zero.
        std: standard deviation of the normal distribution.
        generator: the generator to draw from; the global generator by default.

    Shape:
        - Tensor: (rows, columns).

    Raises:
        ValueError: the tensor does not have two dimensions.

    Example:
        >>> w = nn.init.sparse_(torch.empty(10, 4), sparsity=0.3)
        >>> (w == 0).sum(0)
        tensor([3, 3, 3, 3])
    """
    if tensor.dim() != 2:
        raise ValueError(f"sparse_(tensor): got {tensor.dim()} dimensions, needs 2")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0.0, std, generator=generator)
    for column in range(columns):
        chosen = core.randperm(rows, generator=generator, device=tensor.device)[:zeros]
        tensor[chosen, column] = 0.0
    return tensor


# PyTorch's names before version 0.4. They were deprecated when functions that write to their argument got an
# underscore.
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
        warnings.warn(f"nn.init.{name} is deprecated: use nn.init.{name}_", FutureWarning, stacklevel=2)
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
