"""Every function compared with NumPy or SciPy, in float64 or with tolerances for float32."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import signal, special

import rushlight_core as core
import rushlight_nn.functional as F


def to(array, dtype=None):
    tensor = core.from_numpy(np.ascontiguousarray(array))
    return tensor if dtype is None else tensor.to(dtype)


def close(result, expected, rtol=1e-6, atol=1e-7):
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=rtol, atol=atol)


X = np.linspace(-5.0, 5.0, 41)


ACTIVATIONS = {
    "relu": (lambda x: F.relu(x), np.maximum(X, 0)),
    "relu6": (lambda x: F.relu6(x * 2), np.clip(2 * X, 0, 6)),
    "hardtanh": (lambda x: F.hardtanh(x, -2, 3), np.clip(X, -2, 3)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), np.where(X > 0, X, 0.2 * X)),
    "elu": (lambda x: F.elu(x, 1.5), np.where(X > 0, X, 1.5 * np.expm1(X))),
    "gelu": (lambda x: F.gelu(x), X * special.ndtr(X)),
    "gelu_tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        X / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))),
    ),
    "silu": (lambda x: F.silu(x), X * special.expit(X)),
    "sigmoid": (lambda x: F.sigmoid(x), special.expit(X)),
    "tanh": (lambda x: F.tanh(x), np.tanh(X)),
    "logsigmoid": (lambda x: F.logsigmoid(x * 50), special.log_expit(50 * X)),
    "softplus": (lambda x: F.softplus(x, 2.0), np.logaddexp(0, 2 * X) / 2),
    "softplus_linear": (lambda x: F.softplus(x, 1.0, 2.0), np.where(X > 2, X, np.logaddexp(0, X))),
    "selu": (
        lambda x: F.selu(x),
        1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(X)),
    ),
    "celu": (lambda x: F.celu(x, 1.5), np.where(X > 0, X, 1.5 * np.expm1(X / 1.5))),
    "threshold": (lambda x: F.threshold(x, 1.0, -7.0), np.where(X > 1, X, -7)),
    "softsign": (lambda x: F.softsign(x), X / (1 + np.abs(X))),
    "hardswish": (lambda x: F.hardswish(x), X * np.clip(X + 3, 0, 6) / 6),
    "hardsigmoid": (lambda x: F.hardsigmoid(x), np.clip(X + 3, 0, 6) / 6),
    "mish": (lambda x: F.mish(x), X * np.tanh(np.logaddexp(0, X))),
    "softmax": (lambda x: F.softmax(x, 0), special.softmax(X)),
    "softmin": (lambda x: F.softmin(x, dim=0), special.softmax(-X)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), special.log_softmax(X)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    function, expected = ACTIVATIONS[name]
    close(function(to(X)), expected)


IN_PLACE = [F.relu, F.relu6, F.hardtanh, F.leaky_relu, F.elu, F.selu, F.celu, F.silu, F.mish, F.hardswish]
IN_PLACE += [F.hardsigmoid, lambda x, inplace=False: F.threshold(x, 1.0, 2.0, inplace)]


@pytest.mark.parametrize("function", IN_PLACE)
def test_in_place_activations(function):
    expected = function(to(X)).numpy()
    x = to(X.copy())
    assert function(x, inplace=True) is x
    close(x, expected)


def test_softmax_arguments(rng):
    x = rng.normal(size=(3, 4))
    close(F.softmax(to(x), 0), special.softmax(x, axis=0))
    assert F.softmax(to(x), 1, dtype=core.float32).dtype == core.float32
    with pytest.warns(UserWarning, match="implicit dimension choice"):
        close(F.log_softmax(to(x)), special.log_softmax(x, axis=1))


def test_glu(rng):
    x = rng.normal(size=(2, 6))
    close(F.glu(to(x)), x[:, :3] * special.expit(x[:, 3:]))
    with pytest.raises(RuntimeError, match="even"):
        F.glu(to(x[:, :5]))


def test_gumbel_softmax():
    logits = core.log(core.tensor([0.7, 0.2, 0.1]))
    samples = F.gumbel_softmax(logits.expand(4000, 3), hard=True)
    assert set(samples.numpy().ravel().round(6).tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(samples.mean(0).numpy(), [0.7, 0.2, 0.1], atol=0.04)


def test_activation_arguments_are_checked():
    with pytest.raises(ValueError, match="min_val <= max_val"):
        F.hardtanh(to(X), 2.0, 1.0)


# Linear maps and convolutions -------------------------------------------------------------------------------


def test_linear(rng):
    x, w, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
    close(F.linear(to(x), to(w), to(b)), x @ w.T + b)
    close(F.linear(to(x), to(w)), x @ w.T)


def reference_conv2d(x, w, b, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    """Compute every output channel as a sum of SciPy correlations."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    out, per_group, kh, kw = w.shape
    spread = np.zeros((out, per_group, (kh - 1) * dilation[0] + 1, (kw - 1) * dilation[1] + 1))
    spread[:, :, :: dilation[0], :: dilation[1]] = w
    result = []
    for n in range(len(x)):
        planes = []
        for o in range(out):
            first = o // (out // groups) * per_group
            plane = sum(
                signal.correlate2d(x[n, first + i], spread[o, i], mode="valid") for i in range(per_group)
            )
            planes.append(plane[:: stride[0], :: stride[1]] + (0 if b is None else b[o]))
        result.append(planes)
    return np.array(result)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    [(1, 0, 1, 1), (2, 1, 1, 2), ((1, 2), (2, 0), (2, 1), 1), (3, 2, 2, 4)],
)
def test_conv2d(rng, stride, padding, dilation, groups):
    def pair(v):
        return v if isinstance(v, tuple) else (v, v)

    x, w, b = rng.normal(size=(2, 4, 9, 8)), rng.normal(size=(8, 4 // groups, 3, 2)), rng.normal(size=8)
    expected = reference_conv2d(x, w, b, pair(stride), pair(padding), pair(dilation), groups)
    result = F.conv2d(
        to(x, core.float32), to(w, core.float32), to(b, core.float32), stride, padding, dilation, groups
    )
    close(result, expected, 1e-4, 1e-4)


def test_conv1d(rng):
    x, w, b = rng.normal(size=(2, 3, 10)), rng.normal(size=(4, 3, 3)), rng.normal(size=4)
    expected = reference_conv2d(x[:, :, None], w[:, :, None], b, (1, 2), (0, 1))[:, :, 0]
    result = F.conv1d(to(x, core.float32), to(w, core.float32), to(b, core.float32), 2, 1)
    close(result, expected, 1e-4, 1e-4)


# Pooling ----------------------------------------------------------------------------------------------------


def windows(x, kernel, stride):
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(-2, -1))
    return view[..., ::stride, ::stride, :, :]


def test_max_pool2d(rng):
    x = rng.normal(size=(2, 3, 8, 7))
    close(F.max_pool2d(to(x), 3, 2), windows(x, (3, 3), 2).max((-2, -1)))
    close(F.max_pool2d(to(x), 2), windows(x, (2, 2), 2).max((-2, -1)))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    result, indices = F.max_pool2d(to(x), 3, 2, 1, return_indices=True)
    close(result, windows(padded, (3, 3), 2).max((-2, -1)))
    flat = x.reshape(2, 3, -1)
    assert indices.dtype == core.int64
    close(result, np.take_along_axis(flat, indices.numpy().reshape(2, 3, -1), -1).reshape(result.shape))


def test_avg_pool2d(rng):
    x = rng.normal(size=(2, 3, 8, 7))
    close(F.avg_pool2d(to(x), 3, 2), windows(x, (3, 3), 2).mean((-2, -1)))
    close(F.avg_pool2d(to(x), 2, divisor_override=3), windows(x, (2, 2), 2).sum((-2, -1)) / 3)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    ones = np.pad(np.ones_like(x), ((0, 0), (0, 0), (1, 1), (1, 1)))
    total = windows(padded, (3, 3), 2).sum((-2, -1))
    close(F.avg_pool2d(to(x), 3, 2, 1), total / 9)
    close(
        F.avg_pool2d(to(x), 3, 2, 1, count_include_pad=False), total / windows(ones, (3, 3), 2).sum((-2, -1))
    )


@pytest.mark.parametrize("size", [(1, 1), (3, 5), 4, (None, 2)])
def test_adaptive_avg_pool2d(rng, size):
    x = rng.normal(size=(2, 3, 7, 6))
    h, w = size if isinstance(size, tuple) else (size, size)
    h = 7 if h is None else h
    expected = np.empty((2, 3, h, w))
    for i in range(h):
        for j in range(w):
            rows = slice(i * 7 // h, -(-(i + 1) * 7 // h))
            columns = slice(j * 6 // w, -(-(j + 1) * 6 // w))
            expected[..., i, j] = x[..., rows, columns].mean((-2, -1))
    close(F.adaptive_avg_pool2d(to(x), size), expected)


# Normalisation ----------------------------------------------------------------------------------------------


def test_batch_norm(rng):
    x, w, b = rng.normal(2.0, 3.0, size=(4, 3, 5)), rng.normal(size=3), rng.normal(size=3)
    mean, var = x.mean((0, 2)), x.var((0, 2))
    running_mean, running_var = core.zeros(3, dtype=core.float64), core.ones(3, dtype=core.float64)
    result = F.batch_norm(to(x), running_mean, running_var, to(w), to(b), True, 0.1, 1e-3)
    normal = (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-3)
    close(result, normal * w[:, None] + b[:, None])
    close(running_mean, 0.1 * mean)
    close(running_var, 0.9 + 0.1 * x.var((0, 2), ddof=1))
    fixed = F.batch_norm(to(x), to(mean), to(var), to(w), to(b), False, 0.1, 1e-3)
    close(fixed, normal * w[:, None] + b[:, None])
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        F.batch_norm(to(x[:1, :, 0]), None, None, training=True)


def test_layer_norm(rng):
    x, w, b = rng.normal(2.0, 3.0, size=(4, 3, 5)), rng.normal(size=(3, 5)), rng.normal(size=(3, 5))
    normal = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    close(F.layer_norm(to(x), (3, 5), to(w), to(b)), normal * w + b)
    close(F.layer_norm(to(x), [3, 5]), normal)


def test_group_norm(rng):
    x, w, b = rng.normal(2.0, 3.0, size=(2, 6, 4, 3)), rng.normal(size=6), rng.normal(size=6)
    grouped = x.reshape(2, 3, -1)
    normal = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    normal = normal.reshape(x.shape)
    close(F.group_norm(to(x), 3), normal)
    close(F.group_norm(to(x), 3, to(w), to(b)), normal * w[:, None, None] + b[:, None, None])
    with pytest.raises(RuntimeError, match="4 groups"):
        F.group_norm(to(x), 4)


def test_rms_norm(rng):
    x, w = rng.normal(size=(4, 5)), rng.normal(size=5)
    normal = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3)
    close(F.rms_norm(to(x), (5,), to(w), 1e-3), normal * w)
    close(F.rms_norm(to(x), (5,)), x / np.sqrt((x**2).mean(-1, keepdims=True) + np.finfo(np.float64).eps))


def test_normalize(rng):
    x = rng.normal(size=(4, 5))
    close(F.normalize(to(x)), x / np.linalg.norm(x, axis=1, keepdims=True))
    close(F.normalize(to(np.zeros((2, 2)))), np.zeros((2, 2)))


# Dropout and tables -----------------------------------------------------------------------------------------


def test_dropout():
    x = core.ones(20000)
    y = F.dropout(x, 0.25)
    kept = y.numpy() != 0
    assert abs(kept.mean() - 0.75) < 0.02
    np.testing.assert_allclose(y.numpy()[kept], 1 / 0.75, rtol=1e-6)
    assert core.equal(F.dropout(x, 0.5, training=False), x)
    assert float(F.dropout(x, 1.0).abs().sum()) == 0.0
    for p in (-0.1, 1.1):
        with pytest.raises(ValueError, match="probability"):
            F.dropout(x, p)


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("dtype", [core.int64, core.uint8, core.bool, core.float32, core.complex64])
@pytest.mark.parametrize(
    ("name", "dims"),
    [("dropout", 1), ("dropout1d", 3), ("dropout2d", 4), ("dropout3d", 5)]
    + [("alpha_dropout", 1), ("feature_alpha_dropout", 3)],
)
def test_dropping_everything_preserves_the_dtype(name, dims, dtype, inplace):
    x = core.ones((2,) * dims, dtype=dtype)
    y = getattr(F, name)(x, 1.0, training=True, inplace=inplace)
    assert (y is x) == inplace
    assert y.dtype == dtype
    assert y.shape == x.shape
    assert not y.any()


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(
    ("function", "shape", "counted"),
    [
        (F.dropout1d, (40, 60), 1),
        (F.dropout1d, (4, 60, 3), 2),
        (F.dropout2d, (40, 60), 2),
        (F.dropout2d, (10, 60, 3), 2),
        (F.dropout2d, (10, 60, 3, 2), 2),
        (F.dropout2d, (10, 60, 3, 2, 2), 2),
        (F.dropout3d, (60, 3), 1),
        (F.dropout3d, (60, 3, 2, 2), 1),
        (F.dropout3d, (10, 60, 2, 2, 2), 2),
    ],
)
@pytest.mark.filterwarnings("ignore:dropout")
def test_what_dropout_of_channels_takes_for_channels(function, shape, counted, inplace):
    y = function(core.ones(shape), 0.5, True, inplace).numpy().reshape(*shape[:counted], -1)
    assert np.array_equal(y, np.broadcast_to(y[..., :1], y.shape))
    assert 0.3 < (y[..., 0] == 2.0).mean() < 0.7
    assert set(np.unique(y)) == {0.0, 2.0}


def test_dropout_of_channels_warns_of_other_dimensions():
    for function, fine, odd in ((F.dropout2d, (4,), (2, 3, 5)), (F.dropout3d, (4, 5), (1, 2, 3, 6))):
        for dims in odd:
            with pytest.warns(UserWarning, match=f"got {dims} dimensions"):
                function(core.ones((2,) * dims), 0.5)
        for dims in fine:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                function(core.ones((2,) * dims), 0.5)
    with pytest.raises(RuntimeError, match="needs at least 2"), pytest.warns(match="got 1 dimensions"):
        F.dropout2d(core.ones(3), 0.5)
    with pytest.raises(RuntimeError, match="got 4 dimensions"):
        F.dropout1d(core.ones(1, 1, 1, 1), 0.5)


def test_dropout2d_drops_whole_channels():
    x = core.ones(50, 40, 3, 3)
    y = F.dropout2d(x, 0.5).numpy()
    per_channel = y.reshape(2000, 9)
    assert (per_channel == per_channel[:, :1]).all()
    assert set(np.unique(y)) == {0.0, 2.0}
    assert F.dropout2d(x, 0.5, training=False) is x


def test_embedding(rng):
    table = rng.normal(size=(6, 3))
    index = np.array([[0, 5], [2, 2]])
    close(F.embedding(to(index), to(table)), table[index])
    close(F.embedding(to(index), to(table), padding_idx=-1), table[index])
    with pytest.raises(IndexError, match="6 rows"):
        F.embedding(to(index), to(table), padding_idx=6)


def test_embedding_max_norm(rng):
    table = rng.normal(size=(6, 3)) * 5
    weight = to(table.copy())
    F.embedding(to(np.array([1, 1, 4])), weight, max_norm=1.0)
    norms = np.linalg.norm(weight.numpy(), axis=1)
    np.testing.assert_allclose(norms[[1, 4]], 1.0, rtol=1e-5)
    np.testing.assert_array_equal(weight.numpy()[[0, 2, 3, 5]], table[[0, 2, 3, 5]])


def test_one_hot():
    classes = np.array([[0, 2], [1, 2]])
    np.testing.assert_array_equal(F.one_hot(to(classes)).numpy(), np.eye(3, dtype=np.int64)[classes])
    assert tuple(F.one_hot(to(classes), 5).shape) == (2, 2, 5)
    for bad, count in ((to(classes), 2), (to(-classes), 5), (to(classes.astype(np.int32)), 5)):
        with pytest.raises(RuntimeError):
            F.one_hot(bad, count)


# Losses -----------------------------------------------------------------------------------------------------


def reduced(values, reduction):
    return {"none": lambda v: v, "sum": np.sum, "mean": np.mean}[reduction](values)


A = np.linspace(-2.0, 2.0, 12).reshape(3, 4)
B = np.linspace(1.5, -1.0, 12).reshape(3, 4) ** 3
P, T = special.expit(A), special.expit(B)
D = np.abs(A - B)

ELEMENTWISE = {
    "mse_loss": (lambda r: F.mse_loss(to(A), to(B), reduction=r), D**2),
    "l1_loss": (lambda r: F.l1_loss(to(A), to(B), reduction=r), D),
    "huber_loss_weighted": (
        lambda r: F.huber_loss(to(A), to(B), r, 0.5, to(T)),
        T * np.where(D < 0.5, D**2 / 2, 0.5 * (D - 0.25)),
    ),
    "smooth_l1_loss": (
        lambda r: F.smooth_l1_loss(to(A), to(B), reduction=r, beta=0.5),
        np.where(D < 0.5, D**2, D - 0.25),
    ),
    "smooth_l1_loss_0": (lambda r: F.smooth_l1_loss(to(A), to(B), reduction=r, beta=0.0), D),
    "huber_loss": (
        lambda r: F.huber_loss(to(A), to(B), r, 0.5),
        np.where(D < 0.5, D**2 / 2, 0.5 * (D - 0.25)),
    ),
    "binary_cross_entropy": (
        lambda r: F.binary_cross_entropy(to(P), to(T), reduction=r),
        -(T * np.log(P) + (1 - T) * np.log(1 - P)),
    ),
    "binary_cross_entropy_with_logits": (
        lambda r: F.binary_cross_entropy_with_logits(
            to(A), to(T), reduction=r, pos_weight=to(np.full(4, 3.0))
        ),
        -(3 * T * np.log(P) + (1 - T) * np.log(1 - P)),
    ),
    "kl_div": (lambda r: F.kl_div(to(A), to(T), reduction=r), T * (np.log(T) - A)),
    "kl_div_log": (
        lambda r: F.kl_div(to(A), to(B), reduction=r, log_target=True),
        np.exp(B) * (B - A),
    ),
}


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_losses(name, reduction):
    function, expected = ELEMENTWISE[name]
    close(function(reduction), reduced(expected, reduction))


@pytest.mark.parametrize(("function", "each"), [(F.mse_loss, D**2), (F.l1_loss, D)])
def test_weighted_losses(function, each):
    close(function(to(A), to(B), weight=to(T), reduction="none"), each * T)
    close(function(to(A), to(B), weight=to(T), reduction="sum"), (each * T).sum())
    close(function(to(A), to(B), weight=to(T)), np.average(each, weights=T))
    with pytest.raises(ValueError, match="weight"):
        function(to(A), to(B), weight=to(T[:1]))


def test_kl_div_batchmean():
    close(F.kl_div(to(A), to(T), reduction="batchmean"), (T * (np.log(T) - A)).sum() / 3)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_cross_entropy(rng, reduction):
    x, target, weight = rng.normal(size=(5, 3)), np.array([0, 2, -100, 1, 2]), np.array([1.0, 2.0, 0.5])
    logp = special.log_softmax(x, axis=1)
    kept = target != -100
    each = np.where(kept, -logp[np.arange(5), target * kept] * weight[target * kept], 0.0)
    expected = each.sum() / weight[target[kept]].sum() if reduction == "mean" else reduced(each, reduction)
    close(F.cross_entropy(to(x), to(target), to(weight), reduction=reduction), expected)
    close(F.nll_loss(to(logp), to(target), to(weight), reduction=reduction), expected)


def test_cross_entropy_of_images(rng):
    x, target = rng.normal(size=(2, 3, 4, 5)), rng.integers(0, 3, size=(2, 4, 5))
    logp = special.log_softmax(x, axis=1)
    expected = -np.take_along_axis(logp, target[:, None], 1)[:, 0]
    close(F.cross_entropy(to(x), to(target), reduction="none"), expected)
    close(F.nll_loss(to(logp), to(target)), expected.mean())


def test_cross_entropy_with_probabilities_and_smoothing(rng):
    x, target = rng.normal(size=(5, 3)), special.softmax(rng.normal(size=(5, 3)), axis=1)
    logp = special.log_softmax(x, axis=1)
    close(F.cross_entropy(to(x), to(target)), -(target * logp).sum(1).mean())
    classes = np.array([0, 1, 2, 1, 0])
    smooth = 0.9 * np.eye(3)[classes] + 0.1 / 3
    close(F.cross_entropy(to(x), to(classes), label_smoothing=0.1), -(smooth * logp).sum(1).mean())


@pytest.mark.parametrize(
    "function", [F.mse_loss, F.l1_loss, F.binary_cross_entropy, F.cross_entropy, F.kl_div]
)
def test_reduction_is_checked(function):
    with pytest.raises(ValueError, match=r"reduction\): got 'average', needs 'none', 'mean' or 'sum'"):
        function(to(P), to(T), reduction="average")


def test_older_reduction_arguments_still_work():
    with pytest.warns(DeprecationWarning, match="reduction='sum'"):
        close(F.mse_loss(to(A), to(B), size_average=False), (D**2).sum())
    with pytest.warns(DeprecationWarning, match="reduction='none'"):
        close(F.l1_loss(to(A), to(B), reduce=False), D)


def test_shapes_of_targets():
    with pytest.warns(UserWarning, match="broadcast"):
        close(F.mse_loss(to(A), to(B[:1])), ((A - B[:1]) ** 2).mean())
    with pytest.raises(ValueError, match="view_as"):
        F.binary_cross_entropy(to(P), to(T[:1]))


def test_cosine_similarity(rng):
    a, b = rng.normal(size=(4, 5)), rng.normal(size=(4, 5))
    expected = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    close(F.cosine_similarity(to(a), to(b)), expected)
    close(F.cosine_similarity(to(a), to(a * 0)), np.zeros(4))


# Attention and padding --------------------------------------------------------------------------------------


def test_scaled_dot_product_attention(rng):
    q, k, v = (rng.normal(size=(2, 3, n, 4)) for n in (5, 6, 6))
    scores = q @ k.swapaxes(-1, -2) / 2.0
    close(F.scaled_dot_product_attention(to(q), to(k), to(v)), special.softmax(scores, axis=-1) @ v)
    mask = rng.random((5, 6)) < 0.7
    mask[:, 0] = True
    expected = special.softmax(np.where(mask, scores, -np.inf), axis=-1) @ v
    close(F.scaled_dot_product_attention(to(q), to(k), to(v), to(mask)), expected)
    causal = np.tril(np.ones((5, 6), bool))
    expected = special.softmax(np.where(causal, scores, -np.inf), axis=-1) @ v
    close(F.scaled_dot_product_attention(to(q), to(k), to(v), is_causal=True), expected)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pad(rng, mode):
    x = rng.normal(size=(2, 4, 5))
    numpy_mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    close(F.pad(to(x), (2, 1), mode), np.pad(x, ((0, 0), (0, 0), (2, 1)), numpy_mode))
    close(F.pad(to(x), (0, 3, 2, 0), mode), np.pad(x, ((0, 0), (2, 0), (0, 3)), numpy_mode))


def test_pad_with_a_value_and_negative_amounts(rng):
    x = rng.normal(size=(2, 4, 5))
    close(F.pad(to(x), (1, -2), value=7.0), np.pad(x[..., :3], ((0, 0), (0, 0), (1, 0)), constant_values=7.0))
    with pytest.raises(RuntimeError):
        F.pad(to(x), (1, 2, 3))
    with pytest.raises(RuntimeError):
        F.pad(to(x), (5, 0), "reflect")
    with pytest.raises(NotImplementedError, match="mirror"):
        F.pad(to(x), (1, 1), "mirror")
    with pytest.raises(ValueError, match="takes no value"):
        F.pad(to(x), (1, 1), "reflect", 3.0)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize(
    ("shape", "amounts"),
    [
        ((2, 3), (-1, -2)),
        ((2, 4, 3), (0, 0, -4, 0)),
        ((2, 0), (0, 0)),
        ((2, 0, 4), (1, 1)),
        ((2, 3, 0), (0, 0)),
    ],
)
def test_pad_needs_elements_and_leaves_some(mode, shape, amounts):
    with pytest.raises(RuntimeError, match=r"at least 1|requires elements"):
        F.pad(core.ones(shape), amounts, mode)


def test_pad_of_an_empty_batch():
    assert F.pad(core.ones(0, 3, 4), (1, 2), "reflect").shape == (0, 3, 7)


@pytest.mark.parametrize("amounts", [(-4, 2), (2, -4), (-2, -2), (3, -4)])
def test_a_constant_is_not_taken_away(amounts):
    """Negative amounts remove elements of the input, but not of the padding."""
    with pytest.raises(RuntimeError, match="cannot be padded"):
        F.pad(core.ones(3), amounts)
    assert F.pad(core.ones(3), (2, -3)).tolist() == [0.0, 0.0]


def test_operators_are_core_s_own():
    # These names refer to core's operators directly, so calling them costs nothing extra.
    for name in ("linear", "conv2d", "gelu", "softplus", "sigmoid", "scaled_dot_product_attention"):
        assert getattr(F, name) is getattr(core, name)


@pytest.mark.parametrize(
    ("mode", "align_corners", "antialias", "expected"),
    [
        ("bilinear", False, False, [[31, 52, 66, 62, 88, 115, 136], [150, 171, 161, 96, 122, 94, 42],
                                    [55, 76, 103, 129, 155, 164, 160]]),
        ("bicubic", True, False, [[0, 51, 97, 148], [121, 114, 20, 112], [192, 168, 46, 53], [138, 173, 207, 0],
                                  [79, 139, 226, 70], [43, 94, 140, 191]]),
        ("bilinear", False, True, [[112, 84, 97], [110, 139, 127]]),
        ("bicubic", False, True, [[63, 93], [162, 90], [94, 160]]),
    ],
)  # fmt: skip
def test_images_of_bytes(mode: str, align_corners: bool, antialias: bool, expected: list[list[int]]) -> None:
    """The results equal PyTorch's: weights in fixed point, and rounding after the columns and after the rows."""
    image = (core.arange(20) * 37 % 256).to(core.uint8).reshape(1, 1, 4, 5)
    size = (len(expected), len(expected[0]))
    result = F.interpolate(image, size, mode=mode, align_corners=align_corners, antialias=antialias)
    assert result.dtype is core.uint8
    assert result[0, 0].tolist() == expected
    same = F.interpolate(image, (4, 5), mode=mode, align_corners=align_corners, antialias=antialias)
    assert core.equal(same, image)
    assert same.data_ptr() != image.data_ptr()


@pytest.mark.parametrize("pool", [F.adaptive_avg_pool2d, F.adaptive_max_pool2d, F.adaptive_avg_pool3d])
def test_adaptive_pools_want_channels(pool) -> None:
    with pytest.raises(ValueError, match=r"2 sizes .* 3 dimensions"):
        pool(core.zeros(2, 2), (2, None))
    with pytest.raises(RuntimeError, match="dimensions"):
        pool(core.zeros(2, 2), 2)


@pytest.mark.parametrize("delta", [0.0, -1.0])
def test_huber_loss_wants_a_positive_delta(delta: float) -> None:
    with pytest.raises(RuntimeError, match=r"huber_loss\(delta\): must be positive"):
        F.huber_loss(core.ones(2), core.zeros(2), delta=delta)


def test_nll_loss_of_bytes() -> None:
    """uint8 targets are classes like int64 targets, and can be ignored by `ignore_index`."""
    scores = core.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    target = core.tensor([1, 255], dtype=core.uint8)
    wanted = F.nll_loss(scores, target.to(core.int64), ignore_index=255)
    assert core.equal(F.nll_loss(scores, target, ignore_index=255), wanted)
    with pytest.raises(RuntimeError, match="int64 classes"):
        F.nll_loss(scores, target.to(core.int32))


@pytest.mark.parametrize("lengths", [[3, 2], (3, 2), np.array([3, 2]), core.tensor([3, 2])])
def test_lengths_of_ctc_loss_are_sequences_arrays_or_tensors(lengths) -> None:
    log_probs = core.zeros(3, 2, 2).log_softmax(2)
    targets = core.tensor([[1], [1]])
    want = F.ctc_loss(log_probs, targets, core.tensor([3, 2]), core.tensor([1, 1]))
    assert F.ctc_loss(log_probs, targets, lengths, [1, 1]).item() == want.item()


@pytest.mark.parametrize("lengths", [[2.5, 2], np.array([2.0, 2.0]), [True, True]])
def test_lengths_of_ctc_loss_are_integers(lengths) -> None:
    with pytest.raises(RuntimeError, match=r"input_lengths\): needs 2 integers"):
        F.ctc_loss(core.zeros(3, 2, 2), core.tensor([[1], [1]]), lengths, [1, 1])


def test_ctc_loss_of_an_empty_batch() -> None:
    none = core.zeros(0, 1, dtype=core.int64)
    assert F.ctc_loss(core.zeros(3, 0, 2), none, [], (), reduction="none").shape == (0,)


def test_phrases_that_programs_search_for() -> None:
    wide, narrow = core.zeros(3, 1), core.zeros(3)
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        with pytest.warns(
            UserWarning,
            match=r"Using a target size \(torch.Size\(\[3\]\)\) that is different .* due to broadcasting",
        ):
            loss(wide, narrow)
    with pytest.raises(ValueError, match=r"Using a target size \(torch.Size\(\[3\]\)\)"):
        F.binary_cross_entropy(wide, narrow)
    with pytest.raises(ValueError, match="Expected more than 1 spatial element when training"):
        F.instance_norm(core.ones(2, 3, 1))


@pytest.mark.parametrize("size", [4.5, 6.0, (3, 2.0), core.tensor(3.0)])
def test_interpolate_refuses_sizes_that_are_not_integers(size):
    with pytest.raises(TypeError, match=r"interpolate\(size\)"):
        F.interpolate(core.ones(1, 1, 4, 4), size)


def test_interpolate_takes_integers_of_any_type():
    for size in (3, np.int64(3), core.tensor(3), (np.int32(3), 3)):
        assert F.interpolate(core.ones(1, 1, 4, 4), size).shape == (1, 1, 3, 3)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_multi_margin_loss_of_one_row_has_the_shape_of_the_target(shape):
    target = core.zeros(shape, dtype=core.int64)
    scores = core.tensor([1.0, 2.0, 0.5])
    loss = F.multi_margin_loss(scores, target, reduction="none")
    assert loss.shape == shape
    assert loss.sum().item() == F.multi_margin_loss(scores[None], target.reshape(1), reduction="sum").item()


@pytest.mark.parametrize(("training", "eps"), [(True, 0.0), (True, -1e-5), (False, -1e-5)])
def test_batch_norm_refuses_an_eps_out_of_range(training, eps):
    with pytest.raises(ValueError, match=r"batch_norm\(eps\)"):
        F.batch_norm(core.rand(4, 3), core.zeros(3), core.ones(3), training=training, eps=eps)


def test_cross_entropy_refuses_an_ignored_class_beside_probabilities():
    scores, shares = core.rand(2, 3), core.rand(2, 3)
    with pytest.raises(RuntimeError, match="ignore_index"):
        F.cross_entropy(scores, shares, ignore_index=0)
    assert F.cross_entropy(scores, shares, ignore_index=-1) == F.cross_entropy(scores, shares)


@pytest.mark.parametrize("dtype", [core.bfloat16, core.float16], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("size", [(22, 14), (5, 3)])
def test_interpolate_rounds_numbers_of_16_bits_once(dtype, mode, size):
    """The result is that of float32, rounded."""
    x = core.randn(2, 3, 11, 7).to(dtype)
    y, exact = F.interpolate(x, size, mode=mode), F.interpolate(x.float(), size, mode=mode)
    assert y.dtype == dtype
    assert ((y.float() - exact).abs() <= core.finfo(dtype).eps / 2 * exact.abs() + 1e-6).all()


def test_numbers_out_of_range_raise_the_error_of_pytorch():
    x = core.rand(1, 1, 4, 4)
    for factor in (1e20, -1e20):
        with pytest.raises(RuntimeError, match=r"interpolate\(scale_factor\)"):
            F.interpolate(x, scale_factor=factor, mode="bilinear")
    with pytest.raises(RuntimeError, match=r"smooth_l1_loss\(beta\)"):
        F.smooth_l1_loss(x, x, beta=-1.0)


@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.bfloat16, core.float16])
@pytest.mark.parametrize("bounds", [(-1.0, math.nan), (math.nan, 1.0), (math.nan, math.nan)])
def test_hardtanh_of_bounds_that_are_nan(dtype, bounds):
    x = core.tensor([0.0, -0.0, 3.0, math.inf, math.nan], dtype=dtype)
    assert F.hardtanh(x, *bounds).isnan().all()
    assert core.clamp(x, *bounds).isnan().all()
