"""Layers and functions for many classes, and pooling over random windows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rushlight_core as core
import rushlight_nn as nn
import rushlight_nn.functional as F


def adaptive(**options):
    return nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, **options)


def test_adaptive_softmax_is_a_distribution():
    layer = adaptive(head_bias=True)
    assert list(layer.state_dict()) == [
        "head.weight",
        "head.bias",
        "tail.0.0.weight",
        "tail.0.1.weight",
        "tail.1.0.weight",
        "tail.1.1.weight",
    ]
    assert [tuple(p.shape) for p in layer.tail.parameters()] == [(4, 8), (6, 4), (2, 8), (10, 2)]
    x = core.randn(30, 8)
    logs = layer.log_prob(x)
    assert logs.shape == (30, 20)
    np.testing.assert_allclose(np.exp(logs.detach().numpy()).sum(1), np.ones(30), rtol=1e-5)
    target = core.arange(30) % 20
    output, loss = layer(x, target)
    np.testing.assert_allclose(
        output.detach().numpy(), logs.gather(1, target[:, None]).squeeze(1).detach().numpy(), rtol=1e-5
    )
    assert float(loss) == pytest.approx(-float(output.mean()), rel=1e-5)
    assert layer.predict(x).tolist() == logs.argmax(1).tolist()
    single = layer(x[3], target[3])
    assert single.output.shape == ()
    assert float(single.output) == pytest.approx(float(output[3]), rel=1e-5)


def test_prediction_where_all_are_in_the_head_or_none_is():
    layer = adaptive(head_bias=True)
    for entry in (0, 4, 5):
        with core.no_grad():
            layer.head.weight.zero_()
            layer.head.bias.fill_(-50.0)
            layer.head.bias[entry] = 50.0
        x = core.randn(5, 8)
        assert layer.predict(x).tolist() == layer.log_prob(x).argmax(1).tolist()


@pytest.mark.parametrize("cutoffs", [[], [5, 5], [0, 4], [4, 20], [5, 3], [2.5]])
def test_cutoffs(cutoffs):
    with pytest.raises(ValueError, match="cutoffs"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs)


def test_targets_of_adaptive_softmax():
    for target in (core.tensor([20]), core.tensor([-1]), core.tensor([1, 2]), core.tensor([[1]])):
        with pytest.raises(RuntimeError, match="target"):
            adaptive()(core.ones(1, 8), target)


# --- fractional pooling ---


def reference(x, window, output, samples):
    """Pool one plane by the definition: windows at two different distances, and the maximum of each."""

    def starts(size, count, k, u):
        if count == 1:
            return [size - k]
        step = np.float32(size - k) / np.float32(count - 1)
        return [int((np.float32(i) + u) * step) - int(u * step) for i in range(count - 1)] + [size - k]

    all_starts = [starts(*one) for one in zip(x.shape, output, window, samples, strict=True)]
    result = np.empty(output, np.float32)
    for at in itertools.product(*(range(n) for n in output)):
        cut = tuple(slice(all_starts[d][i], all_starts[d][i] + window[d]) for d, i in enumerate(at))
        result[at] = x[cut].max()
    return result


@pytest.mark.parametrize(
    ("shape", "window", "output"), [((9, 11), (2, 3), (4, 5)), ((5, 6, 7), (2, 2, 3), (3, 1, 4))]
)
def test_fractional_max_pool(rng, shape, window, output):
    dims = len(shape)
    x = rng.normal(size=(2, 3, *shape)).astype(np.float32)
    samples = rng.uniform(size=(2, 3, dims)).astype(np.float32)
    layer = getattr(nn, f"FractionalMaxPool{dims}d")(
        window, output, return_indices=True, _random_samples=core.from_numpy(samples)
    )
    result, indices = layer(core.from_numpy(x))
    order = samples if dims == 3 else samples[..., ::-1]
    expected = np.stack(
        [[reference(x[n, c], window, output, order[n, c]) for c in range(3)] for n in range(2)]
    )
    np.testing.assert_array_equal(result.numpy(), expected)
    flat = np.take_along_axis(x.reshape(2, 3, -1), indices.numpy().reshape(2, 3, -1), 2)
    np.testing.assert_array_equal(flat.reshape(expected.shape), expected)
    # Without a batch, and without given random numbers.
    single = layer._pool(core.from_numpy(x[0]), window, output, None, False, core.from_numpy(samples[:1]))
    np.testing.assert_array_equal(single.numpy(), expected[0])
    function = getattr(F, f"fractional_max_pool{dims}d")
    assert function(core.from_numpy(x), 2, output_ratio=0.5).shape == (2, 3, *(s // 2 for s in shape))
    assert function(core.zeros(0, 3, *shape), window, output).shape == (0, 3, *output)


def test_arguments_of_fractional_max_pool():
    x = core.ones(1, 1, 4, 4)
    for arguments in ({}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": 1.5}):
        with pytest.raises(ValueError, match="FractionalMaxPool2d"):
            nn.FractionalMaxPool2d(2, **arguments)
    with pytest.raises(
        RuntimeError, match="4 windows of size 3 need at least 6 elements, but the input has 4"
    ):
        F.fractional_max_pool2d(x, 3, 4)
    with pytest.raises(ValueError, match="neither"):
        F.fractional_max_pool2d(x, 3)
    with pytest.raises(RuntimeError, match="2 dimensions"):
        F.fractional_max_pool2d(x[0, 0], 3, 2)
    with pytest.raises(RuntimeError, match="only the batch"):
        F.fractional_max_pool2d(x[:, :0], 3, 2)
    with pytest.raises(NotImplementedError, match="int64"):
        F.fractional_max_pool2d(x.to(core.int64), 3, 2)
    with pytest.raises(RuntimeError, match=r"needs \(1, 1, 2\)"):
        F.fractional_max_pool2d(x, 3, 2, _random_samples=core.ones(2))


# --- linear_cross_entropy ---


@pytest.mark.parametrize("chunk", [None, 1, 4, 100])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reduction": "sum"},
        {"reduction": "none"},
        {"label_smoothing": 0.2},
        {"ignore_index": 2},
        {"weight": core.linspace(0.5, 2, 7)},
        {"weight": core.linspace(0.5, 2, 7), "label_smoothing": 0.2, "ignore_index": 2},
    ],
)
def test_linear_cross_entropy(options, chunk):
    x, w, b, target = core.randn(10, 5), core.randn(7, 5), core.randn(7), core.arange(10) % 7
    how = None if chunk is None else nn.LinearCrossEntropyOptions(batch_chunk_size=chunk)
    result = F.linear_cross_entropy(x, w, target, linear_bias=b, options=how, **options)
    expected = F.cross_entropy(F.linear(x, w, b), target, **options)
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_linear_cross_entropy_elsewhere():
    layer = nn.LinearCrossEntropyLoss(5, 7, out_features=(2, 3), bias=True)
    x, target = core.randn(4, 5), core.randint(0, 7, (4, 2, 3))
    scores = layer.linear(x).reshape(4, 7, 2, 3)
    assert float(layer(x, target)) == pytest.approx(float(F.cross_entropy(scores, target)), rel=1e-5)
    probabilities = scores.softmax(1).detach()
    assert float(layer(x, probabilities)) == pytest.approx(
        float(F.cross_entropy(scores, probabilities)), rel=1e-5
    )
    single = nn.LinearCrossEntropyLoss(5, 7)
    assert single(x[0], core.tensor(3)).shape == ()
    assert "num_classes=7" in repr(single)


def test_arguments_of_linear_cross_entropy():
    x, w = core.randn(4, 5), core.randn(7, 5)
    with pytest.raises(RuntimeError, match=r"linear_weight\): got shape \(7, 4\)"):
        F.linear_cross_entropy(x, w[:, :4], core.arange(4))
    with pytest.raises(RuntimeError, match=r"linear_bias\): got shape \(5,\)"):
        F.linear_cross_entropy(x, w, core.arange(4), linear_bias=core.zeros(5))
    with pytest.raises(RuntimeError, match="ignore_index"):
        F.linear_cross_entropy(x, w, core.rand(4, 7), ignore_index=3)
    with pytest.raises(RuntimeError, match="batch"):
        F.linear_cross_entropy(x[0], w[:, None], core.zeros(1, dtype=core.int64))
    for bad in ({"acc_policy": "fast"}, {"chunking_method": "aspect_ratio:0"}, {"batch_chunk_size": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            nn.LinearCrossEntropyOptions(**bad)
    with pytest.raises(RuntimeError, match="label_smoothing"):
        nn.LinearCrossEntropyLoss(5, 7, label_smoothing=2.0)


def test_chunk_sizes():
    size = nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio")._chunk
    assert size(1024, 64, 6400) == 16  # 100 times as many classes: an eleventh of 1024 as a power of two
    assert nn.LinearCrossEntropyOptions()._chunk(1024, 64, 6400) == 8
    assert nn.LinearCrossEntropyOptions(chunking_method=None)._chunk(1024, 64, 6400) == 1024


def test_data_parallel_on_one_device():
    model = nn.DataParallel(nn.Linear(3, 2))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    assert model(core.ones(4, 3)).shape == (4, 2)
    with pytest.raises(NotImplementedError, match="several GPUs"):
        nn.DataParallel(nn.Linear(3, 2), device_ids=[0, 1])


def test_factory_kwargs():
    assert nn.factory_kwargs(None) == {}
    assert nn.factory_kwargs({"dtype": core.float64}) == {"dtype": core.float64}
    assert nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": core.float64}}) == {
        "device": "cpu",
        "dtype": core.float64,
    }
    with pytest.raises(TypeError, match="'bias'"):
        nn.factory_kwargs({"bias": True})
    with pytest.raises(TypeError, match="twice"):
        nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"device": "meta"}})
