"""Reference functions that NumPy and SciPy lack, for the key `oracle` in ops/*.yaml.

An oracle is an expression that computes the expected results of an operator's tests with NumPy arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .oracles_of_matrices import (  # noqa: F401
    cholesky,
    geqrf,
    householder_product,
    ldl_factor,
    lstsq,
    lu,
    lu_factor,
    lu_solve,
    lu_unpack,
    ormqr,
    qr,
    solve,
    solve_triangular,
)
from .oracles_of_networks import (  # noqa: F401
    attention,
    bce,
    bce_with_logits,
    cosine_embedding,
    cross_entropy,
    ctc_loss,
    embedding_bag,
    grid_sample,
    gru_cell,
    kl_div,
    lstm_cell,
    multi_margin,
    multilabel_margin,
    nll_loss,
    poisson_nll,
    recurrent,
    reduced,
    resample,
    triplet_margin,
)

Array = NDArray[Any]


def axes(dim: Any) -> Any:
    """Convert a `dim` argument to NumPy's `axis`. None and an empty `dim` mean all axes."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return None
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


def named_axes(dim: Any) -> Any:
    """Convert a `dim` argument to NumPy's `axis`. None means all axes, but an empty list means no axis."""
    return tuple(dim) if isinstance(dim, list) else dim


def p_norm(x: Array, p: float, dim: Any, keepdim: bool) -> Any:
    """Return the p-norm over the given dimensions, by default all."""
    magnitude, axis = np.abs(x), axes(dim)
    if p == np.inf:
        return np.max(magnitude, axis=axis, keepdims=keepdim)
    if p == -np.inf:
        return np.min(magnitude, axis=axis, keepdims=keepdim)
    if p == 0:
        return np.sum(x != 0, axis=axis, keepdims=keepdim)
    return np.sum(magnitude**p, axis=axis, keepdims=keepdim) ** (1 / p)


def erfcx_slope(x: Array) -> Array:
    """Return the derivative of erfcx, for positive x from a confluent hypergeometric function (DLMF 7.18.10)."""
    from scipy import special

    x = np.asarray(x, np.float64)
    right = -special.hyperu(1, 0.5, np.square(np.clip(x, 0, 1e150))) / np.sqrt(np.pi)
    left = 2 * np.minimum(x, 0) * special.erfcx(np.minimum(x, 0)) - 2 / np.sqrt(np.pi)
    return np.where(x < 0, left, right)


def finite_difference(f: Callable[[Array], Array], x: Array) -> Array:
    """Return the derivative of f at x, by central differences."""
    step = 1e-6
    return (f(x + step) - f(x - step)) / (2 * step)


def top_k(x: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    """Return the k largest or smallest elements along a dimension in order, and their indices."""
    order = np.argsort(-x if largest else x, axis=dim, kind="stable") if x.ndim else np.zeros((), np.int64)
    if x.ndim == 0:
        return x, order
    first = np.take(order, range(k), axis=dim)
    return np.take_along_axis(x, first, axis=dim), first


def _each(value: Any, count: int) -> list[int]:
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    return values * count if len(values) == 1 else values


def convolution(
    x: Array, weight: Array, bias: Array | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Array:  # fmt: skip
    """Convolve by adding each product: out[..., o] += x[..., o * stride + k * dilation - padding] * weight[k]."""
    spatial = weight.ndim - 2
    if x.ndim == spatial + 1:
        return convolution(
            x[None], weight, bias, stride, padding, dilation, transposed, output_padding, groups
        )[0]
    step, spread = _each(stride, spatial), _each(dilation, spatial)
    kernel, size = weight.shape[2:], x.shape[2:]
    reach = [d * (k - 1) for d, k in zip(spread, kernel, strict=True)]
    if padding == "same":
        front, total = [r // 2 for r in reach], reach
    else:
        front = _each(0 if padding == "valid" else padding, spatial)
        total = [2 * p for p in front]
    per_in, per_out = x.shape[1] // groups, (weight.shape[1] if transposed else weight.shape[0] // groups)
    if transposed:
        extra = _each(output_padding, spatial)
        out_size = [
            (n - 1) * s - t + r + 1 + e for n, s, t, r, e in zip(size, step, total, reach, extra, strict=True)
        ]
    else:
        out_size = [(n + t - r - 1) // s + 1 for n, s, t, r in zip(size, step, total, reach, strict=True)]
    out = np.zeros((x.shape[0], per_out * groups, *out_size))
    small, large = (size, out_size) if transposed else (out_size, size)
    for positions in itertools.product(*map(range, small)):
        for taps in itertools.product(*map(range, kernel)):
            other = [
                p * s + k * d - f for p, s, k, d, f in zip(positions, step, taps, spread, front, strict=True)
            ]
            if any(o < 0 or o >= n for o, n in zip(other, large, strict=True)):
                continue
            for g in range(groups):
                ins: Any  # NumPy's types do not support an index of slices and a starred tuple
                outs: Any
                ins, outs = slice(g * per_in, (g + 1) * per_in), slice(g * per_out, (g + 1) * per_out)
                if transposed:
                    out[:, outs, *other] += x[:, ins, *positions] @ weight[ins, :, *taps]
                else:
                    out[:, outs, *positions] += x[:, ins, *other] @ weight[outs, :, *taps].T
    return out if bias is None else out + bias.reshape(-1, *[1] * spatial)


def pool(
    reduce: Callable[[Array], Any], x: Array, pooled: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool,
) -> Array:  # fmt: skip
    """Apply `reduce` to the elements of the input in each window."""
    return _windows(
        x, pooled, kernel_size, stride, padding, dilation, ceil_mode, lambda seen, _: reduce(seen)
    )


def avg_pool(
    x: Array, pooled: int, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Array:  # fmt: skip
    """Return the mean of the elements of each window, with or without the elements in the padding."""

    def mean(seen: Array, padded: int) -> Any:
        return np.sum(seen) / (divisor_override or (padded if count_include_pad else seen.size))

    return _windows(x, pooled, kernel_size, stride, padding, 1, ceil_mode, mean)


def _windows(
    x: Array, pooled: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    value: Callable[[Array, int], Any],
) -> Array:  # fmt: skip
    kernel, pad, spread = _each(kernel_size, pooled), _each(padding, pooled), _each(dilation, pooled)
    step = _each(stride, pooled) if stride not in ((), [], None) else kernel
    lead, size = x.shape[: x.ndim - pooled], x.shape[x.ndim - pooled :]
    counts = []
    for n, k, s, p, d in zip(size, kernel, step, pad, spread, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil_mode else room // s) + 1
        counts.append(count - 1 if ceil_mode and (count - 1) * s >= n + p else count)
    out = np.zeros((*lead, *counts), dtype=np.result_type(x, np.float64))
    for plane in itertools.product(*map(range, lead)):
        for position in itertools.product(*map(range, counts)):
            lines, padded = [], 1
            for o, n, k, s, p, d in zip(position, size, kernel, step, pad, spread, strict=True):
                taps = [o * s - p + i * d for i in range(k)]
                lines.append([t for t in taps if 0 <= t < n])
                padded *= len([t for t in taps if t < n + p])
            out[plane + position] = value(x[plane][np.ix_(*lines)], padded)
    return out


def adaptive_pool(reduce: Callable[[Array], Any], x: Array, output_size: Any, pooled: int) -> Array:
    """Cover each dimension of n elements with m windows, and apply `reduce` to each window.

    Window i covers the positions [floor(i n / m), ceil((i + 1) n / m)).
    """
    return _adaptive(reduce, x, _each(output_size, pooled))


def _adaptive(reduce: Callable[[Array], Any], x: Array, counts: list[int]) -> Array:
    lead, size = x.shape[: x.ndim - len(counts)], x.shape[x.ndim - len(counts) :]
    out = np.zeros((*lead, *counts), dtype=np.result_type(x, np.float64))
    for plane in itertools.product(*map(range, lead)):
        for position in itertools.product(*map(range, counts)):
            window = tuple(
                slice(i * n // m, -(-(i + 1) * n // m))
                for i, n, m in zip(position, size, counts, strict=True)
            )
            out[plane + position] = reduce(x[plane][window])
    return out


def batch_norm(
    x: Array, weight: Array | None, bias: Array | None, running_mean: Array | None, running_var: Array | None,
    training: bool, eps: float,
) -> Array:  # fmt: skip
    """Return (x - mean) / sqrt(var + eps) for each channel, scaled and shifted."""
    axis = (0, *range(2, x.ndim))
    mean = x.mean(axis) if training or running_mean is None else running_mean
    var = x.var(axis) if training or running_var is None else running_var
    shape = (1, -1, *[1] * (x.ndim - 2))
    y = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def layer_norm(x: Array, shape: Any, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Return the layer normalization over the last dimensions."""
    axis = tuple(range(x.ndim - len(shape), x.ndim))
    y = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def log_of_sum(a: Array, b: Array) -> Array:
    """Return log(exp(a) + exp(b)), computed relative to the operand with the larger real part."""
    if not np.iscomplexobj(a) and not np.iscomplexobj(b):
        return np.logaddexp(a, b)
    a, b = np.broadcast_arrays(np.asarray(a, complex), np.asarray(b, complex))
    first = (a.real >= b.real) | np.isnan(b.real)
    larger, smaller = np.where(first, a, b), np.where(first, b, a)
    both = np.isinf(larger.real) & (larger.real == smaller.real)
    sums = np.where(larger.real < 0, larger, np.log(np.exp(a) + np.exp(b)))
    return np.where(both, sums, larger + np.log(1 + np.exp(smaller - larger)))


def logs_of_sums(x: Array, dim: int) -> Array:
    """Return log(exp(x[0]) + ... + exp(x[i])) for each i along a dimension."""
    lines = np.moveaxis(x, dim, 0)
    made = list(itertools.accumulate(lines, lambda so_far, one: log_of_sum(one, so_far)))
    return np.moveaxis(np.stack(made), 0, dim) if made else x


def rms_norm(x: Array, shape: Any, weight: Array | None, eps: float | None) -> Array:
    """Divide by the root of the mean square of the last dimensions."""
    axis = tuple(range(x.ndim - len(shape), x.ndim))
    eps = float(np.finfo(np.float32).eps) if eps is None else eps
    y = x / np.sqrt(np.mean(x**2, axis, keepdims=True) + eps)
    return y if weight is None else y * weight


def group_norm(x: Array, groups: int, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Normalize each group of channels of each sample."""
    y = x.reshape(x.shape[0], groups, -1)
    y = ((y - y.mean(2, keepdims=True)) / np.sqrt(y.var(2, keepdims=True) + eps)).reshape(x.shape)
    shape = (1, -1, *[1] * (x.ndim - 2))
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def _moments(x: Array, axis: tuple[int, ...], eps: float) -> tuple[Array, Array]:
    return x.mean(axis, keepdims=True), 1 / np.sqrt(x.var(axis, keepdims=True) + eps)


def native_layer_norm(
    x: Array, shape: Any, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return the result of `layer_norm`, and the means and reciprocals of the standard deviations."""
    axis = tuple(range(x.ndim - len(shape), x.ndim))
    return (layer_norm(x, shape, weight, bias, eps), *_moments(x, axis, eps))


def native_batch_norm(
    x: Array, weight: Array | None, bias: Array | None, running_mean: Array | None, running_var: Array | None,
    training: bool, eps: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the result of `batch_norm`, and each channel's mean and reciprocal of the standard deviation.

    In evaluation mode, the last two arrays are empty.
    """
    made = batch_norm(x, weight, bias, running_mean, running_var, training, eps)
    if not training:
        return made, x[:0, 0].reshape(0), x[:0, 0].reshape(0)
    mean, rstd = _moments(x, (0, *range(2, x.ndim)), eps)
    return made, mean.reshape(-1), rstd.reshape(-1)


def native_group_norm(
    x: Array, weight: Array | None, bias: Array | None, n: int, c: int, spatial: int, groups: int, eps: float
) -> tuple[Array, Array, Array]:
    """Return the result of `group_norm`, and each group's mean and reciprocal of the standard deviation."""
    mean, rstd = _moments(x.reshape(n, groups, c // groups * spatial), (2,), eps)
    made = group_norm(x, groups, weight, bias, eps)
    return made, mean.reshape(n, groups), rstd.reshape(n, groups)


def lower_median(x: Array, dim: int | None, keepdim: bool, ignore_nan: bool = False) -> Array:
    """Return the lower median, or NaN if any element is NaN. With `ignore_nan`, return NaN only if all elements are NaN."""

    def of_line(line: Array) -> Any:
        known = line[~np.isnan(line)]
        if known.size == 0 or (known.size < line.size and not ignore_nan):
            return np.nan
        return np.sort(known)[(known.size - 1) // 2]

    return _by_lines(of_line, x, dim, keepdim)


def most_frequent(x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """Return the smallest of the most frequent values, and the position of its last occurrence."""

    def value(line: Array) -> Any:
        values, counts = np.unique(line, return_counts=True)
        return values[np.argmax(counts)]

    def position(line: Array) -> Any:
        return np.flatnonzero(line == value(line))[-1]

    return _by_lines(value, x, dim, keepdim), _by_lines(position, x, dim, keepdim).astype(np.int64)


def _by_lines(f: Callable[[Array], Any], x: Array, dim: int | None, keepdim: bool) -> Array:
    if dim is None or x.ndim == 0:
        return np.asarray(f(x.reshape(-1)))
    if x.size == 0:
        return np.sum(x, axis=dim, keepdims=keepdim)
    out = np.apply_along_axis(f, dim, x)
    return np.expand_dims(out, dim) if keepdim else out


def combinations(x: Array, r: int, with_replacement: bool) -> Array:
    """Return all combinations of r elements as rows; for r = 0, an empty array."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(x.tolist(), r))).reshape(-1, r) if r else np.zeros(0)


def diag_embed(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Return matrices whose diagonals contain the elements of `x` along its last dimension, and are zero elsewhere."""
    length = x.shape[-1] + abs(offset)
    result = np.zeros((*x.shape[:-1], length, length), x.dtype)
    index = np.arange(x.shape[-1])
    result[..., index + max(-offset, 0), index + max(offset, 0)] = x
    return np.moveaxis(result, (-2, -1), (dim1, dim2))


def im2col(x: Array, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    """Return each window of an image as a column."""
    batch = x if x.ndim == 4 else x[None]
    padded = np.pad(batch, ((0, 0), (0, 0), *((p, p) for p in padding)))
    counts = [
        (padded.shape[2 + d] - dilation[d] * (kernel_size[d] - 1) - 1) // stride[d] + 1 for d in range(2)
    ]
    columns = []
    for i, j in itertools.product(*map(range, counts)):
        rows, across = (
            slice(at * stride[d], at * stride[d] + dilation[d] * (kernel_size[d] - 1) + 1, dilation[d])
            for d, at in enumerate((i, j))
        )
        columns.append(padded[:, :, rows, across].reshape(len(batch), -1))
    result = np.stack(columns, -1)
    return result if x.ndim == 4 else result[0]


def col2im(
    x: Array, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Array:  # fmt: skip
    """Apply the transpose of im2col: add each element of the columns to its position in the image."""
    batch = x if x.ndim == 3 else x[None]
    channels = batch.shape[1] // int(np.prod(kernel_size))
    size = int(np.prod(output_size))
    image = np.arange(channels * size).reshape(1, channels, *output_size) + 1
    positions = im2col(image, kernel_size, dilation, padding, stride)[0]  # the padding is position 0
    result = np.zeros((len(batch), channels * size + 1), dtype=np.result_type(batch, np.float64))
    for n, columns in enumerate(batch):
        np.add.at(result[n], positions, columns)
    result = result[:, 1:].reshape(len(batch), channels, *output_size)
    return result if x.ndim == 3 else result[0]


def pixel_unshuffle(x: Array, r: int) -> Array:
    """Move r x r blocks of positions to channels."""
    *lead, channels, height, width = x.shape
    result = np.zeros((*lead, channels * r * r, height // r, width // r), x.dtype)
    for i, j in itertools.product(range(r), range(r)):
        result[..., i * r + j :: r * r, :, :] = x[..., i::r, j::r]
    return result


def pixel_shuffle(x: Array, r: int) -> Array:
    """Move channels to r x r blocks of positions."""
    *lead, channels, height, width = x.shape
    result = np.zeros((*lead, channels // (r * r), height * r, width * r), x.dtype)
    for i, j in itertools.product(range(r), range(r)):
        result[..., i::r, j::r] = x[..., i * r + j :: r * r, :, :]
    return result


def scattered(x: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool) -> Array:
    """Scatter `src`: reduce all values with the same index, and write the result at this index."""
    if x.ndim == 0:
        return scattered(x.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self).reshape(
            ()
        )
    met: dict[tuple[int, ...], list[Any]] = {}
    for position in np.ndindex(index.shape):
        to = (*position[: dim % x.ndim], int(index[position]), *position[dim % x.ndim + 1 :])
        met.setdefault(to, [x[to]] if include_self else []).append(src[position])
    functions: dict[str, Any] = {
        "sum": np.sum,
        "prod": np.prod,
        "mean": np.mean,
        "amax": np.max,
        "amin": np.min,
    }
    f = functions[reduce]
    out = x.copy()
    for to, values in met.items():
        out[to] = np.floor(f(values)) if reduce == "mean" and x.dtype.kind in "iu" else f(values)
    return out


def polynomial(name: str, x: Any, n: Any) -> Array:
    """Evaluate an orthogonal polynomial of SciPy, or a Chebyshev polynomial of the third or fourth kind ("v", "w", ...)."""
    from scipy import special

    real = [np.asarray(np.real(v), np.float64) for v in (x, n)]
    x, degree = np.broadcast_arrays(real[0], np.trunc(real[1]))
    if name.startswith("shifted_"):
        return polynomial(name.removeprefix("shifted_"), 2 * x - 1, degree)
    if name in ("v", "w"):
        sign = -1 if name == "v" else 1
        return polynomial("eval_chebyu", x, degree) + sign * polynomial("eval_chebyu", x, degree - 1)
    function = getattr(special, name)
    values = [function(int(k), v) if k >= 0 else 0.0 for k, v in zip(degree.flat, x.flat, strict=True)]
    return np.array(values, np.float64).reshape(x.shape)


def replaced(x: Array, values: Array, part: Callable[[Array], Array]) -> Array:
    """Return a copy in which the elements of the view `part` are replaced by `values`."""
    out = np.array(x, order="C")
    part(out)[...] = values
    return out


def replaced_diagonal(x: Array, values: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Return a copy in which the elements of a diagonal are replaced by `values`."""
    out = np.array(x, order="C")
    moved = np.moveaxis(out, (dim1, dim2), (0, 1))
    for i in range(values.shape[-1]):
        moved[i + max(-offset, 0), i + max(offset, 0)] = values[..., i]
    return out


def with_diagonal(x: Array, value: Any, wrap: bool) -> Array:
    """Return a copy whose diagonal elements are set to a number.

    If `wrap` is true, the diagonal of a tall matrix wraps around, and continues below its end."""
    out = np.array(x, order="C")
    if x.ndim == 2:
        np.fill_diagonal(out, value, wrap)
    else:
        for i in range(x.shape[0]):
            out[(i,) * x.ndim] = value
    return out


def index_put(x: Array, indices: list[Any], values: Array, accumulate: bool) -> Array:
    """Return a copy with values written or added at the positions in `indices`, where None selects a whole dimension."""
    out = np.array(x)
    index: Any = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        np.add.at(out, index, values)
    else:
        out[index] = values
    return out


def stft(
    x: Array, n_fft: int, hop: int | None, width: int | None, window: Array | None, center: bool, pad_mode: str,
    normalized: bool, onesided: bool | None, return_complex: bool | None, align_to_window: bool | None,
) -> Array:  # fmt: skip
    """Return the short-time Fourier transform, computed window by window."""
    hop, width = hop or n_fft // 4, width or n_fft
    taper = np.zeros(n_fft, float if window is None else window.dtype)
    left = (n_fft - width) // 2
    taper[left : left + width] = 1 if window is None else window
    around = n_fft // 2 if center else left if align_to_window else 0
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(around, around)], mode=pad_mode)  # type: ignore[call-overload]
    frames = range((x.shape[-1] - n_fft) // hop + 1)
    spectra = np.stack([np.fft.fft(x[..., i * hop : i * hop + n_fft] * taper) for i in frames], -1)
    if onesided if onesided is not None else not (np.iscomplexobj(x) or np.iscomplexobj(taper)):
        spectra = spectra[..., : n_fft // 2 + 1, :]
    spectra = spectra / np.sqrt(n_fft) if normalized else spectra
    return spectra if return_complex is not False else np.stack([spectra.real, spectra.imag], -1)


def istft(
    x: Array, n_fft: int, hop: int | None, window: Array | None, normalized: bool, onesided: bool | None,
    length: int | None, return_complex: bool,
) -> Array:  # fmt: skip
    """Return the inverse STFT of a centered signal: the sum of the frames divided by the sum of the squared windows."""
    hop = hop or n_fft // 4
    taper = np.ones(n_fft) if window is None else window
    if not return_complex:  # the first half of the frequencies determines a real signal
        x = x[..., : n_fft // 2 + 1, :]
        rest = np.conj(x[..., 1 : n_fft - n_fft // 2, :][..., ::-1, :])
        x = np.concatenate([x, rest], -2)
    frames = np.fft.ifft(x, axis=-2) * (np.sqrt(n_fft) if normalized else 1)
    total = n_fft + hop * (frames.shape[-1] - 1)
    signal, squares = np.zeros((*frames.shape[:-2], total), complex), np.zeros(total)
    for i in range(frames.shape[-1]):
        signal[..., i * hop : i * hop + n_fft] += frames[..., i] * taper
        squares[i * hop : i * hop + n_fft] += taper**2
    first = n_fft // 2
    last = total - first if length is None else first + length
    signal = signal[..., first:last] / squares[first:last]
    return signal if return_complex else signal.real
