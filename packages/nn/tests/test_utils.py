from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn import Linear, Parameter, utils


def params(rng):
    result = [Parameter(core.zeros(s)) for s in ((3, 4), (5,), (2,))]
    for p in result[:2]:
        p.grad = core.from_numpy(rng.normal(size=tuple(p.shape)).astype(np.float32))
    return result


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_clip_grad_norm(rng, order, limit):
    ps = params(rng)
    grads = [p.grad.numpy().copy() for p in ps[:2]]
    norm = np.linalg.norm(np.concatenate([g.ravel() for g in grads]), order)
    total = utils.clip_grad_norm_(ps, limit, order)
    assert float(total) == pytest.approx(norm, rel=1e-5)
    factor = min(1.0, limit / norm)
    for p, g in zip(ps, grads, strict=False):
        np.testing.assert_allclose(p.grad.numpy(), g * factor, rtol=1e-5)
    assert ps[2].grad is None


def test_clip_grad_norm_of_nothing_and_of_infinity(rng):
    assert float(utils.clip_grad_norm_([Parameter(core.ones(1))], 1.0)) == 0.0
    p = Parameter(core.ones(2))
    p.grad = core.tensor([1.0, math.inf])
    with pytest.raises(RuntimeError, match="error_if_nonfinite=False"):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert p.grad.tolist() == [1.0, math.inf]
    assert math.isinf(float(utils.clip_grad_norm_(iter([p]), 1.0)))


def test_clip_grad_value(rng):
    ps = params(rng)
    grads = [p.grad.numpy().copy() for p in ps[:2]]
    utils.clip_grad_value_(ps, 0.3)
    for p, g in zip(ps, grads, strict=False):
        np.testing.assert_array_equal(p.grad.numpy(), g.clip(-np.float32(0.3), np.float32(0.3)))


def test_parameters_as_a_vector():
    layer = Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    expected = np.concatenate([p.detach().numpy().ravel() for p in layer.parameters()])
    np.testing.assert_array_equal(vector.detach().numpy(), expected)
    utils.vector_to_parameters(core.arange(9).float(), layer.parameters())
    assert layer.weight.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert layer.bias.tolist() == [6.0, 7.0, 8.0]
    with pytest.raises(RuntimeError, match="got 8 elements, needs 9"):
        utils.vector_to_parameters(core.zeros(8), layer.parameters())
    with pytest.raises(TypeError):
        utils.vector_to_parameters([1.0], layer.parameters())


# --- fused layers, and weights in another memory format ---


def _settled(bn: Any) -> Any:
    """Return a layer in evaluation mode, with statistics, factors and shifts other than the initial ones."""
    for i, values in enumerate((bn.running_mean, bn.running_var, bn.weight, bn.bias)):
        values.data.copy_(core.linspace(0.5, 1.5, values.numel()) + i)
    return bn.eval()


@pytest.mark.parametrize("bias", [True, False])
def test_fusing_with_batch_norm(bias: bool) -> None:
    x = core.randn(2, 3, 6, 6)
    conv, bn = nn.Conv2d(3, 5, 3, bias=bias).eval(), _settled(nn.BatchNorm2d(5))
    fused = utils.fuse_conv_bn_eval(conv, bn)
    assert fused is not conv
    assert core.allclose(fused(x), bn(conv(x)), 1e-4, 1e-5)
    back = nn.ConvTranspose2d(3, 5, 3, bias=bias).eval()
    assert core.allclose(utils.fuse_conv_bn_eval(back, bn, transpose=True)(x), bn(back(x)), 1e-4, 1e-5)
    linear, flat = nn.Linear(6, 4, bias=bias).eval(), _settled(nn.BatchNorm1d(4))
    rows = core.randn(7, 6)
    assert core.allclose(utils.fuse_linear_bn_eval(linear, flat)(rows), flat(linear(rows)), 1e-4, 1e-5)
    with pytest.raises(RuntimeError, match="evaluation mode"):
        utils.fuse_conv_bn_eval(conv.train(), bn)
    with pytest.raises(RuntimeError, match="4 features and 5"):
        utils.fuse_linear_bn_eval(linear, bn)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("channels", [3, 5])
def test_fused_weights(spatial: int, transpose: bool, channels: int) -> None:
    """The weights equal those of the fused layer. Different numbers of inputs and outputs detect exchanged dimensions."""
    name = f"Conv{'Transpose' if transpose else ''}{spatial}d"
    conv = getattr(nn, name)(3, channels, 2).eval()
    bn = _settled(getattr(nn, f"BatchNorm{spatial}d")(channels))
    weight, bias = utils.fuse_conv_bn_weights(
        conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    x = core.randn(2, 3, *[4] * spatial)
    wanted = bn(conv(x))
    conv.weight, conv.bias = weight, bias
    assert core.allclose(conv(x), wanted, 1e-4, 1e-5)


def test_weights_in_channels_last() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv3d(4, 2, 2))
    x, wanted = core.randn(1, 3, 8, 8), net[0].weight.detach().clone()
    assert utils.convert_conv2d_weight_memory_format(net, core.channels_last) is net
    assert net[0].weight.is_contiguous(memory_format=core.channels_last)
    assert net[2].weight.is_contiguous()
    assert core.equal(net[0].weight.detach(), wanted)
    assert net[0](x).is_contiguous(memory_format=core.channels_last)
    utils.convert_conv3d_weight_memory_format(net, core.channels_last_3d)
    assert net[2].weight.is_contiguous(memory_format=core.channels_last_3d)


def test_old_names_of_init() -> None:
    with pytest.warns(FutureWarning, match="nn.init.constant_"):
        assert nn.init.constant(core.empty(2), 3.0).tolist() == [3.0, 3.0]
    with pytest.raises(AttributeError, match="nothing"):
        nn.init.nothing


def test_pools_by_their_other_names() -> None:
    x = core.randn(2, 3, 9)
    for name, argument in (("max_pool1d", 2), ("adaptive_max_pool1d", 4)):
        values, indices = getattr(nn.functional, name + "_with_indices")(x, argument)
        wanted = getattr(nn.functional, name)(x, argument, return_indices=True)
        assert core.equal(values, wanted[0])
        assert core.equal(indices, wanted[1])


@pytest.mark.parametrize("trained", [(True, False), (False, True)])
def test_fused_weights_require_grad_as_those_of_the_layer(trained):
    norm = nn.BatchNorm2d(3)
    statistics = (norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    conv, linear = nn.Conv2d(2, 3, 1), nn.Linear(2, 3)
    for layer, fuse in ((conv, utils.fuse_conv_bn_weights), (linear, utils.fuse_linear_bn_weights)):
        layer.weight.requires_grad, layer.bias.requires_grad = trained
        weight, bias = fuse(layer.weight, layer.bias, *statistics)
        assert (weight.requires_grad, bias.requires_grad) == trained
        assert fuse(layer.weight, None, *statistics)[1].requires_grad is False
