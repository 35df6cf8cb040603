"""Losses and normalisations of inputs without elements, without classes, or without dimensions."""

from __future__ import annotations

import math

import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn import functional as F

ELEMENTWISE = ["MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss"]
ELEMENTWISE += ["PoissonNLLLoss", "SoftMarginLoss", "HingeEmbeddingLoss"]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_losses_of_nothing_and_of_one_number(name):
    loss = getattr(nn, name)
    for shape in ((0,), (0, 3), (2, 0, 3)):
        nothing = core.ones(shape)
        assert math.isnan(loss()(nothing, nothing))
        assert loss(reduction="sum")(nothing, nothing).item() == 0
        assert loss(reduction="none")(nothing, nothing).shape == shape
    line, number = core.full((1,), 0.5), core.full((), 0.5)
    for reduction in ("none", "mean", "sum"):
        expected = loss(reduction=reduction)(line, line)
        result = loss(reduction=reduction)(number, number)
        assert result.shape == ()
        assert result.item() == expected.item()


@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize(("shape", "target_shape"), [((3, 0), (3,)), ((2, 0, 3), (2, 3)), ((0,), ())])
def test_no_classes(function, shape, target_shape):
    x = core.ones(shape)
    for reduction in ("none", "mean", "sum"):
        with pytest.raises(IndexError, match="out of range for 0 classes"):
            function(x, core.zeros(target_shape, dtype=core.int64), reduction=reduction)
    ignored = core.full(target_shape, -100)
    result = function(x, ignored, reduction="none")
    assert result.shape == target_shape
    assert result.eq(0).all()
    assert function(x, ignored, reduction="sum").item() == 0
    assert math.isnan(function(x, ignored))


@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize(
    ("shape", "target_shape"), [((0, 3), (0,)), ((0, 3, 2), (0, 2)), ((2, 3, 0), (2, 0))]
)
def test_no_positions(function, shape, target_shape):
    x, target = core.ones(shape), core.zeros(target_shape, dtype=core.int64)
    assert function(x, target, reduction="none").shape == target_shape
    assert function(x, target, reduction="sum").item() == 0
    assert math.isnan(function(x, target))


@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.bfloat16])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("size", [1, 2])
def test_convolutions_without_input_channels(dtype, transposed, size):
    convolution = F.conv_transpose2d if transposed else F.conv2d
    x = core.ones(2, 0, 5, 5, dtype=dtype)
    weight = core.ones((0, 3, size, size) if transposed else (3, 0, size, size), dtype=dtype)
    bias = core.arange(3).to(dtype)
    assert convolution(x, weight, bias).eq(bias.reshape(3, 1, 1)).all()
    assert convolution(x, weight).eq(0).all()


def test_margin_ranking_loss_of_other_dimensions():
    x = core.ones(2, 3)
    for arguments in ((x, x, core.ones(3)), (x, core.ones(3), x), (core.ones(()), x, x)):
        with pytest.raises(RuntimeError, match="different numbers of dimensions"):
            F.margin_ranking_loss(*arguments)


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"track_running_stats": False}])
@pytest.mark.parametrize(
    ("dims", "shape"), [(1, (0, 3)), (1, (2, 3, 0)), (2, (0, 3, 2, 2)), (3, (0, 3, 1, 1, 1))]
)
def test_batch_norm_of_nothing(dims, shape, options):
    layer = getattr(nn, f"BatchNorm{dims}d")(3, **options)
    assert layer(core.ones(shape)).shape == shape
    assert layer.eval()(core.ones(shape)).shape == shape


def test_batch_norm_without_channels():
    for shape in ((3, 0), (2, 0, 3), (0, 0)):
        assert F.batch_norm(core.ones(shape), None, None, training=True).shape == shape
    with pytest.raises(ValueError, match="Expected more than 1"):
        F.batch_norm(core.ones(1, 3), None, None, training=True)


@pytest.mark.parametrize("shape", [(0, 3, 4), (0, 3, 2, 2), (2, 0, 3), (2, 3, 0)])
def test_instance_norm_of_nothing(shape):
    x = core.ones(shape)
    assert F.instance_norm(x).shape == shape
    mean, var = core.full((3,), 2.0), core.full((3,), 3.0)
    assert F.instance_norm(x, mean, var).shape == shape
    assert mean.tolist() == [2.0] * 3
    assert var.tolist() == [3.0] * 3


def test_one_value_per_channel_or_group():
    for shape in ((0, 3, 1), (2, 3, 1), (2, 3)):
        with pytest.raises(ValueError, match="Expected more than 1"):
            F.instance_norm(core.ones(shape))
    for shape in ((1, 3), (1, 3, 1)):
        with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
            nn.GroupNorm(3, 3)(core.ones(shape))
    assert nn.GroupNorm(3, 3)(core.ones(2, 3)).shape == (2, 3)
    assert nn.GroupNorm(1, 3)(core.ones(1, 3)).shape == (1, 3)
    assert nn.GroupNorm(3, 3)(core.ones(0, 3)).shape == (0, 3)


def test_what_a_layer_needs_of_dimensions():
    for layer in (nn.BatchNorm1d(3), nn.BatchNorm2d(3), nn.InstanceNorm1d(3), nn.LocalResponseNorm(2)):
        with pytest.raises(ValueError, match="dimensions"):
            layer(core.ones(()))


def test_normalizing_what_has_no_channels():
    """The errors have the same classes as in PyTorch."""
    mean, var = core.zeros(1), core.ones(1)
    for running in ((None, None), (mean, var)):
        with pytest.raises(IndexError, match=r"batch_norm\(input\): needs at least 2 dimensions"):
            F.batch_norm(core.ones(()), *running, training=True)
        with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
            F.batch_norm(core.ones(1), *running, training=True)
    with pytest.raises(IndexError, match="needs at least 2 dimensions"):
        F.batch_norm(core.ones(3), None, None, training=True)
    with pytest.raises(RuntimeError, match="needs at least 2 dimensions"):
        F.batch_norm(core.ones(()), mean, var)
    for shape in ((), (3,)):
        with pytest.raises(ValueError, match="Expected more than 1 spatial element"):
            F.instance_norm(core.ones(shape))


def test_batch_norm_of_a_vector_without_elements():
    """A tensor of shape (0) has no channels."""
    none = core.zeros(0)
    assert F.batch_norm(none, none, none, training=True).shape == (0,)
    assert F.batch_norm(none, none, none, none, none).shape == (0,)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    "kind", ["max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool", "lp_pool"]
)
def test_pools_of_no_channels(kind, dims):
    """Only the batch may be empty, except for average pooling with windows that divide the input."""
    spatial = (4,) * dims
    arguments = (2, 2) if kind == "lp_pool" else (2,)
    pool = getattr(F, f"{kind}{dims}d")
    assert pool(core.zeros(0, 3, *spatial), *arguments).shape == (0, 3, *[2] * dims)
    if kind == "adaptive_avg_pool":
        assert pool(core.zeros(2, 0, *spatial), *arguments).shape == (2, 0, *[2] * dims)
        return
    with pytest.raises(RuntimeError, match="only the batch may be empty"):
        pool(core.zeros(2, 0, *spatial), *arguments)


def test_unpooling_of_nothing():
    assert F.max_unpool2d(core.zeros(0, 4, 6), core.zeros(0, 4, 6, dtype=core.int64), 2).shape == (0, 8, 12)


MASKS = {"no mask": None, "bools": core.ones(4, 0, dtype=core.bool), "numbers": core.zeros(4, 0)}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("mask", MASKS)
def test_attention_to_no_positions_is_zero(mask, dropout, causal):
    q, k, v = core.ones(1, 2, 4, 8), core.ones(1, 2, 0, 8), core.ones(1, 2, 0, 6)
    y = F.scaled_dot_product_attention(q, k, v, MASKS[mask], dropout, causal)
    assert y.shape == (1, 2, 4, 6)
    assert y.eq(0).all()
    none = F.scaled_dot_product_attention(q[:, :, :0], k, v, is_causal=causal, dropout_p=dropout)
    assert none.shape == (1, 2, 0, 6)


@pytest.mark.parametrize("need_weights", [False, True])
def test_multihead_attention_to_no_positions(need_weights):
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    q, none = core.ones(3, 4, 8), core.ones(3, 0, 8)
    for options in (
        {},
        {"attn_mask": core.zeros(4, 0, dtype=core.bool)},
        {"attn_mask": core.zeros(4, 0)},
        {"key_padding_mask": core.zeros(3, 0, dtype=core.bool)},
    ):
        y, weights = layer(q, none, none, need_weights=need_weights, **options)
        assert core.equal(y, layer.out_proj.bias.expand(3, 4, 8))
        assert weights.shape == (3, 4, 0) if need_weights else weights is None
