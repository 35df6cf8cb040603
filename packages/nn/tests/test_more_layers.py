"""Properties of dropout of channels, padding and bags that can be tested without a reference implementation."""

from __future__ import annotations

import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn import functional as F


@pytest.mark.parametrize("dims", [1, 3])
def test_dropout_of_channels(dims):
    x = core.ones(20, 30, *(3,) * dims)
    y = getattr(nn, f"Dropout{dims}d")(0.25)(x)
    kept = y.flatten(2)
    assert core.allclose(kept.amax(2), kept.amin(2))  # a channel is kept or dropped as a whole
    assert set(y.reshape(-1).tolist()) == {0.0, core.tensor(1 / 0.75).item()}
    assert 0.65 < float((kept[:, :, 0] != 0).float().mean()) < 0.85
    with pytest.raises(ValueError, match="probability"):
        getattr(F, f"dropout{dims}d")(x, 1.5)


def test_alpha_dropout_keeps_mean_and_variance():
    x = core.randn(200, 500)
    y = F.alpha_dropout(x, 0.3, training=True)
    assert abs(float(y.mean())) < 0.02
    assert abs(float(y.var()) - 1) < 0.03
    z = x.clone()
    assert F.alpha_dropout(z, 0.3, True, inplace=True) is z
    assert not core.equal(z, x)
    channels = F.feature_alpha_dropout(core.zeros(20, 30, 4), 0.5, training=True)
    assert core.allclose(channels.amax(2), channels.amin(2))
    assert len(set(channels[:, :, 0].reshape(-1).tolist())) == 2


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_are_their_rows(mode):
    layer = nn.EmbeddingBag(6, 3, mode=mode, padding_idx=-1)
    rows, offsets = core.tensor([1, 0, 5, 2, 2, 5]), core.tensor([0, 3, 3, 5])
    with core.no_grad():
        bags = layer(rows, offsets)
        both = layer.weight[core.tensor([1, 0])]
        first = {"sum": both.sum(0), "mean": both.mean(0), "max": both.amax(0)}[mode]
    assert core.allclose(bags[0], first)
    assert float(bags[1].abs().sum()) == 0  # empty
    assert float(bags[3].abs().sum()) == 0  # a bag that contains only padding
    with pytest.raises(RuntimeError, match=r"must end with .*, got 5"):
        F.embedding_bag(rows, layer.weight, offsets, include_last_offset=True)
    with pytest.raises(NotImplementedError, match="needs mode 'sum'"):
        F.embedding_bag(rows, layer.weight, offsets, mode="max", per_sample_weights=core.ones(6))


def test_paddings():
    x = core.arange(4.0).view(1, 4)
    assert nn.ReflectionPad1d(2)(x).tolist() == [[2, 1, 0, 1, 2, 3, 2, 1]]
    assert nn.ReplicationPad1d((1, 2))(x).tolist() == [[0, 0, 1, 2, 3, 3, 3]]
    assert nn.CircularPad1d((1, 2))(x).tolist() == [[3, 0, 1, 2, 3, 0, 1]]
    assert nn.ConstantPad1d((0, 1), 7.0)(x).tolist() == [[0, 1, 2, 3, 7]]
    assert nn.ZeroPad1d(-1)(x).tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="needs 4"):
        nn.ZeroPad2d((1, 2))


def test_windows_of_another_number_of_dimensions():
    x = core.ones(1, 1, 2, 2, 2)
    for call in (
        lambda k: F.max_unpool3d(x, core.zeros(1, 1, 2, 2, 2, dtype=core.int64), k),
        lambda k: F.lp_pool3d(x, 2.0, k),
        lambda k: F.fractional_max_pool3d(x, k, output_size=1),
    ):
        with pytest.raises(RuntimeError, match=r"\(kernel_size\): got 2 values, needs 1 or 3"):
            call((1, 1))
        assert core.equal(call((2,)), call(2))


def test_unpooling_undoes_a_pool():
    x = core.arange(16.0).view(1, 1, 4, 4)
    largest, indices = nn.MaxPool2d(2, return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(largest, indices)
    assert core.equal(nn.MaxPool2d(2)(back), largest)
    assert float(back.sum()) == float(largest.sum())


def test_ctc_prefers_the_right_labels():
    scores = core.full((4, 1, 3), -5.0)
    for step, label in enumerate([1, 0, 2, 2]):
        scores[step, 0, label] = 5.0
    logs = F.log_softmax(scores, -1)
    right = F.ctc_loss(logs, core.tensor([[1, 2]]), [4], [2])
    wrong = F.ctc_loss(logs, core.tensor([[2, 1]]), [4], [2])
    assert float(right) < 0.01 < 1 < float(wrong)
    impossible = core.tensor([[1, 1, 2]])
    assert float(nn.CTCLoss()(logs, impossible, core.tensor([3]), core.tensor([3]))) == float("inf")
    assert float(nn.CTCLoss(zero_infinity=True)(logs, impossible, core.tensor([3]), core.tensor([3]))) == 0
    with pytest.raises(RuntimeError, match="not the blank"):
        F.ctc_loss(logs, core.tensor([[0, 2]]), [4], [2])
