from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import rushlight_core as core
import rushlight_nn as nn
import rushlight_nn.functional as F

NO_ARGUMENTS = [nn.ReLU, nn.ReLU6, nn.SiLU, nn.Hardswish, nn.Hardsigmoid, nn.Mish, nn.Sigmoid, nn.LogSigmoid]
NO_ARGUMENTS += [nn.Tanh, nn.Softsign, nn.SELU, nn.Tanhshrink]


@pytest.mark.parametrize("layer", NO_ARGUMENTS)
def test_activation_layers_call_their_function(layer):
    x = core.linspace(-4, 4, 17)
    assert core.equal(layer()(x), getattr(F, layer.__name__.lower())(x))


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.LeakyReLU(0.3), lambda x: F.leaky_relu(x, 0.3)),
        (nn.CELU(2.0), lambda x: F.celu(x, 2.0)),
        (nn.Threshold(1.0, 2.0), lambda x: F.threshold(x, 1.0, 2.0)),
        (nn.ELU(2.0), lambda x: F.elu(x, 2.0)),
        (nn.GELU("tanh"), lambda x: F.gelu(x, approximate="tanh")),
        (nn.Softplus(2.0, 1.0), lambda x: F.softplus(x, 2.0, 1.0)),
        (nn.Hardtanh(-1.0, 2.0), lambda x: F.hardtanh(x, -1.0, 2.0)),
        (nn.Softmax(0), lambda x: F.softmax(x, 0)),
        (nn.Softmin(0), lambda x: F.softmin(x, 0)),
        (nn.LogSoftmax(0), lambda x: F.log_softmax(x, 0)),
        (nn.PReLU(), lambda x: F.leaky_relu(x, 0.25)),
        (nn.GLU(0), lambda x: F.glu(x, 0)),
        (nn.Softshrink(0.3), lambda x: F.softshrink(x, 0.3)),
        (nn.Hardshrink(0.3), lambda x: F.hardshrink(x, 0.3)),
        (nn.RReLU(0.1, 0.3).eval(), lambda x: F.leaky_relu(x, 0.2)),
    ],
)
def test_activation_layers_pass_their_arguments(layer, expected):
    x = core.linspace(-4, 4, 18)
    assert core.allclose(layer(x).detach(), expected(x))


def test_activations_in_place():
    x = core.tensor([-1.0, 2.0])
    assert nn.ReLU(inplace=True)(x) is x
    assert x.tolist() == [0.0, 2.0]
    assert repr(nn.ReLU(inplace=True)) == "ReLU(inplace=True)"


def test_rrelu_draws_a_slope_for_each_element():
    x = -core.ones(1000)
    slopes = -nn.RReLU(0.1, 0.3)(x)
    assert 0.1 <= slopes.min().item() < 0.12
    assert 0.28 < slopes.max().item() <= 0.3
    assert abs(slopes.mean().item() - 0.2) < 0.01
    assert F.rrelu(core.tensor([2.0]), training=True).item() == 2
    assert nn.RReLU(inplace=True)(x) is x


def test_softmax2d():
    x = core.randn(2, 3, 4, 5)
    assert core.equal(nn.Softmax2d()(x), F.softmax(x, 1))
    with pytest.raises(ValueError, match="3 or 4"):
        nn.Softmax2d()(x[0, 0])


def test_prelu_per_channel():
    layer = nn.PReLU(3)
    with core.no_grad():
        layer.weight.copy_(core.tensor([0.1, 0.2, 0.3]))
    result = layer(-core.ones(2, 3, 4)).detach()
    np.testing.assert_allclose(result.numpy()[1, :, 2], [-0.1, -0.2, -0.3], rtol=1e-6)


def test_linear():
    layer = nn.Linear(16, 3)
    assert tuple(layer.weight.shape) == (3, 16)
    assert float(layer.weight.detach().abs().max()) <= 0.25
    assert float(layer.bias.detach().abs().max()) <= 0.25
    x = core.randn(4, 16)
    assert core.equal(layer(x), F.linear(x, layer.weight, layer.bias))
    assert nn.Linear(2, 2, bias=False).bias is None
    assert nn.Linear(2, 2, dtype=core.float64).weight.dtype == core.float64


def test_default_distributions_are_uniform_over_the_fan_in():
    for weight, fan_in in (
        (nn.Linear(100, 200).weight, 100),
        (nn.Conv2d(8, 40, 5, groups=2).weight, 100),
        (nn.Conv1d(20, 100, 5).weight, 100),
    ):
        values = weight.detach().numpy().ravel()
        bound = 1 / math.sqrt(fan_in)
        assert abs(values).max() <= bound
        assert abs(values.mean()) < 0.05 * bound
        np.testing.assert_allclose(values.std(), bound / math.sqrt(3), rtol=0.05)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [0, 2, (1, 2), "same", "valid"])
def test_conv2d_padding(mode, padding):
    layer = nn.Conv2d(2, 3, (3, 4), padding=padding, padding_mode=mode)
    x = core.randn(2, 2, 7, 8)
    by_padding = {"same": (1, 2, 1, 1), "valid": (0,) * 4, 0: (0,) * 4, 2: (2,) * 4, (1, 2): (2, 2, 1, 1)}
    amounts = by_padding[padding]
    padded = F.pad(x, amounts, "constant" if mode == "zeros" else mode)
    expected = F.conv2d(padded, layer.weight, layer.bias)
    assert core.allclose(layer(x), expected, atol=1e-6)


def test_conv2d_attributes_may_change_later():
    layer = nn.Conv2d(1, 1, 3)
    layer.padding, layer.dilation = (2, 2), (2, 2)
    assert tuple(layer(core.zeros(1, 1, 5, 5)).shape) == (1, 1, 5, 5)


def test_conv1d_and_unbatched_input():
    layer = nn.Conv1d(2, 3, 3, padding="same")
    assert tuple(layer(core.zeros(4, 2, 9)).shape) == (4, 3, 9)
    assert tuple(nn.Conv2d(2, 3, 3)(core.zeros(2, 9, 9)).shape) == (3, 7, 7)


@pytest.mark.parametrize(
    "arguments",
    [
        {"groups": 0},
        {"groups": 2},
        {"padding": "most"},
        {"padding": "same", "stride": 2},
        {"padding_mode": "mirror"},
    ],
)
def test_conv2d_refuses(arguments):
    with pytest.raises(ValueError, match="Conv2d"):
        nn.Conv2d(3, 4, 3, **arguments)


def test_conv_repr():
    layer = nn.Conv2d(3, 6, 3, 2, 1, 2, 3, bias=False, padding_mode="circular")
    assert repr(layer) == (
        "Conv2d(3, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), groups=3, "
        "bias=False, padding_mode=circular)"
    )


def test_pooling_layers():
    x = core.randn(2, 3, 8, 8)
    assert core.equal(nn.MaxPool2d(3, 2, 1)(x), F.max_pool2d(x, 3, 2, 1))
    assert len(nn.MaxPool2d(2, return_indices=True)(x)) == 2
    assert core.equal(nn.AvgPool2d(2)(x), F.avg_pool2d(x, 2))
    assert core.equal(nn.AdaptiveAvgPool2d((1, 2))(x), F.adaptive_avg_pool2d(x, (1, 2)))


def test_batch_norm_statistics():
    layer = nn.BatchNorm2d(3, momentum=0.5)
    x = core.randn(8, 3, 4, 4) * 2 + 5
    y = layer(x).detach().numpy()
    np.testing.assert_allclose(y.mean((0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(y.std((0, 2, 3)), 1, atol=1e-3)
    np.testing.assert_allclose(layer.running_mean.numpy(), x.numpy().mean((0, 2, 3)) / 2, rtol=1e-5)
    assert int(layer.num_batches_tracked) == 1
    before = layer.running_mean.clone()
    layer.eval()
    layer(x)
    assert core.equal(layer.running_mean, before)
    layer.reset_running_stats()
    assert float(layer.running_mean.abs().sum()) == 0.0


def test_batch_norm_plain_average():
    layer = nn.BatchNorm1d(2, momentum=None)
    batches = [core.randn(5, 2) + i for i in range(4)]
    for batch in batches:
        layer(batch)
    expected = np.mean([b.numpy().mean(0) for b in batches], 0)
    np.testing.assert_allclose(layer.running_mean.numpy(), expected, rtol=1e-4)


def test_batch_norm_leaves_statistics_that_are_no_longer_tracked():
    layer = nn.BatchNorm1d(4)
    layer.track_running_stats = False
    before = {name: value.clone() for name, value in layer.named_buffers()}
    layer(core.rand(8, 4))
    assert all(core.equal(value, before[name]) for name, value in layer.named_buffers())


def test_batch_norm_without_statistics():
    layer = nn.BatchNorm1d(2, track_running_stats=False, affine=False).eval()
    y = layer(core.randn(50, 2) + 9).numpy()
    np.testing.assert_allclose(y.mean(0), 0, atol=1e-5)
    assert list(layer.state_dict()) == []
    with pytest.raises(ValueError, match=r"BatchNorm1d.*got 4 dimensions, needs 2 or 3"):
        layer(core.zeros(1, 2, 3, 4))


def test_other_norms():
    x = core.randn(2, 6, 5)
    assert core.allclose(nn.LayerNorm(5)(x), F.layer_norm(x, (5,)))
    assert nn.LayerNorm((6, 5), bias=False).bias is None
    assert core.allclose(nn.GroupNorm(3, 6)(x), F.group_norm(x, 3), atol=1e-6)
    assert core.allclose(nn.RMSNorm(5)(x), F.rms_norm(x, (5,)))
    with pytest.raises(ValueError, match="6 channels"):
        nn.GroupNorm(4, 6)


def test_dropout_follows_the_mode():
    layer = nn.Dropout(0.5)
    x = core.ones(1000)
    assert 0 < int((layer(x) == 0).sum()) < 1000
    assert core.equal(layer.eval()(x), x)
    assert core.equal(nn.Dropout2d(0.5).eval()(core.ones(1, 2, 2, 2)), core.ones(1, 2, 2, 2))
    with pytest.raises(ValueError, match="Dropout"):
        nn.Dropout(2.0)


def test_embedding():
    layer = nn.Embedding(100, 64, padding_idx=-1)
    values = layer.weight.detach().numpy()
    assert layer.padding_idx == 99
    assert (values[99] == 0).all()
    assert abs(values[:99].std() - 1) < 0.05
    index = core.tensor([[1, 2], [99, 0]])
    np.testing.assert_array_equal(layer(index).detach().numpy(), values[index.numpy()])
    fixed = nn.Embedding.from_pretrained(core.eye(3))
    assert not fixed.weight.requires_grad
    assert fixed(core.tensor(2)).tolist() == [0.0, 0.0, 1.0]
    assert repr(layer) == "Embedding(100, 64, padding_idx=99)"
    with pytest.raises(IndexError):
        nn.Embedding(3, 2, padding_idx=3)


def test_flatten_and_unflatten():
    x = core.zeros(2, 3, 4, 5)
    assert tuple(nn.Flatten()(x).shape) == (2, 60)
    assert tuple(nn.Flatten(0, 1)(x).shape) == (6, 4, 5)
    assert tuple(nn.Unflatten(2, (2, 2))(x).shape) == (2, 3, 2, 2, 5)
    assert tuple(nn.Unflatten(-1, (5, -1))(x).shape) == (2, 3, 4, 5, 1)
    with pytest.raises(TypeError):
        nn.Unflatten("dim", (2, 2))


def test_unflatten_of_nothing():
    assert tuple(nn.Unflatten(1, (2, -1))(core.zeros(0, 4)).shape) == (0, 2, 2)
    assert tuple(nn.Unflatten(-1, (-1, 2))(core.zeros(3, 0, 4)).shape) == (3, 0, 2, 2)
    assert tuple(nn.Unflatten(1, (-1, 2))(core.zeros(3, 0)).shape) == (3, 0, 2)


def test_unflatten_needs_a_dimension_and_its_size():
    with pytest.raises(IndexError, match="dim"):
        nn.Unflatten(2, (2, 2))(core.zeros(3, 4))
    with pytest.raises(RuntimeError, match="product"):
        nn.Unflatten(1, (2, -1))(core.zeros(4, 3))
    with pytest.raises(RuntimeError, match="product"):
        nn.Unflatten(0, (1, 2))(core.zeros(3, 2, 3))


@pytest.mark.parametrize(
    ("layer", "function", "arguments"),
    [
        (nn.MSELoss, F.mse_loss, {}),
        (nn.L1Loss, F.l1_loss, {}),
        (nn.SmoothL1Loss, F.smooth_l1_loss, {"beta": 0.3}),
        (nn.HuberLoss, F.huber_loss, {"delta": 0.3}),
        (nn.BCELoss, F.binary_cross_entropy, {}),
        (nn.BCEWithLogitsLoss, F.binary_cross_entropy_with_logits, {"pos_weight": core.tensor([2.0])}),
        (nn.KLDivLoss, F.kl_div, {"log_target": True}),
    ],
)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_loss_layers(layer, function, arguments, reduction):
    a, b = core.rand(4, 3), core.rand(4, 3)
    loss = layer(reduction=reduction, **arguments)
    assert core.equal(loss(a, b), function(a, b, reduction=reduction, **arguments))


def test_classification_loss_layers():
    x, target = core.log_softmax(core.randn(4, 3), 1), core.tensor([0, 1, 2, 1])
    weight = core.tensor([1.0, 2.0, 3.0])
    options = {"ignore_index": 2, "reduction": "sum"}
    loss = nn.CrossEntropyLoss(weight, label_smoothing=0.1, **options)
    assert core.equal(loss(x, target), F.cross_entropy(x, target, weight, label_smoothing=0.1, **options))
    assert core.equal(nn.NLLLoss(weight, **options)(x, target), F.nll_loss(x, target, weight, **options))
    assert loss.double().weight.dtype == core.float64
    assert repr(nn.MSELoss(reduction="sum")) == "MSELoss(reduction='sum')"
    with pytest.raises(ValueError, match="CrossEntropyLoss"):
        nn.CrossEntropyLoss(reduction="total")
    with pytest.warns(DeprecationWarning, match="reduction='sum'"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    assert nn.KLDivLoss(reduction="batchmean").reduction == "batchmean"


# Attention --------------------------------------------------------------------------------------------------


def reference_attention(layer, q, k, v, mask):
    """Compute batch-first multi-head attention in NumPy."""
    heads, width = layer.num_heads, layer.head_dim
    bias = np.split(layer.in_proj_bias.detach().numpy(), 3)
    if layer.in_proj_weight is not None:
        weight = np.split(layer.in_proj_weight.detach().numpy(), 3)
    else:
        weight = [getattr(layer, f"{name}_proj_weight").detach().numpy() for name in "qkv"]
    parts = []
    for x, w, b in zip((q, k, v), weight, bias, strict=True):
        y = x @ w.T + b
        parts.append(y.reshape(*y.shape[:2], heads, width).swapaxes(1, 2))
    scores = parts[0] @ parts[1].swapaxes(-1, -2) / math.sqrt(width)
    weights = special.softmax(np.where(mask, -np.inf, scores), axis=-1)
    y = (weights @ parts[2]).swapaxes(1, 2).reshape(q.shape)
    return y @ layer.out_proj.weight.detach().numpy().T + layer.out_proj.bias.detach().numpy(), weights


@pytest.mark.parametrize("widths", [(8, 8), (5, 6)])
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention(rng, widths, need_weights):
    layer = nn.MultiheadAttention(8, 2, kdim=widths[0], vdim=widths[1], batch_first=True)
    q, k, v = (
        rng.normal(size=s).astype(np.float32) for s in ((2, 3, 8), (2, 4, widths[0]), (2, 4, widths[1]))
    )
    padding = np.array([[False, False, True, False], [False] * 4])
    mask = np.zeros((3, 4), bool)
    mask[0, 3] = True
    expected, weights = reference_attention(layer, q, k, v, mask | padding[:, None, None])
    with core.no_grad():
        result, returned = layer(
            *map(core.from_numpy, (q, k, v)),
            key_padding_mask=core.from_numpy(padding),
            attn_mask=core.from_numpy(mask),
            need_weights=need_weights,
        )
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)
    if need_weights:
        np.testing.assert_allclose(returned.numpy(), weights.mean(1), rtol=1e-4, atol=1e-5)
    else:
        assert returned is None


def test_multihead_attention_layouts_and_masks():
    layer = nn.MultiheadAttention(8, 2).eval()
    x = core.randn(5, 3, 8)
    with core.no_grad():
        result, weights = layer(x, x, x, average_attn_weights=False)
        assert tuple(weights.shape) == (3, 2, 5, 5)
        first, _ = layer(x[:, 0], x[:, 0], x[:, 0])
        assert core.allclose(first, result[:, 0], atol=1e-6)
        causal = core.triu(core.ones(5, 5), 1).bool()
        one = layer(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)[0]
        other = layer(x, x, x, attn_mask=causal)[0]
        assert core.allclose(one, other, atol=1e-6)
        each = layer(x, x, x, attn_mask=causal.expand(6, 5, 5))[0]
        assert core.allclose(each, other, atol=1e-6)
    with pytest.raises(RuntimeError, match="attn_mask"):
        layer(x, x, x, attn_mask=causal[:4])
    with pytest.raises(RuntimeError, match="requires attn_mask"):
        layer(x, x, x, is_causal=True)
    with pytest.raises(AssertionError, match="3 equal heads"):
        nn.MultiheadAttention(8, 3)
    with pytest.raises(ValueError, match="must be positive, got 8 and 0"):
        nn.MultiheadAttention(8, 0)
    more = nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)
    padding = core.tensor([[False] * 5, [True] * 5, [False] * 4 + [True]])
    result, weights = more(x, x, x, key_padding_mask=padding, attn_mask=causal)
    assert tuple(result.shape) == (5, 3, 8)
    assert tuple(weights.shape) == (3, 5, 7)
    assert float(weights[1, :, :5].abs().max()) == 0  # only the appended keys are not masked


@pytest.mark.parametrize("added", [{"add_bias_kv": True}, {"add_zero_attn": True}])
def test_added_keys_are_seen_beside_a_causal_mask(added):
    layer = nn.MultiheadAttention(8, 2, **added)
    x, causal = core.randn(5, 3, 8), core.triu(core.ones(5, 5), 1).bool()
    told = layer(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)[0]
    np.testing.assert_allclose(
        told.detach().numpy(), layer(x, x, x, attn_mask=causal)[0].detach().numpy(), atol=1e-6
    )


def test_transformer():
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()
    source, target = core.randn(3, 5, 8), core.randn(3, 4, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    with core.no_grad():
        result = model(source, target, tgt_mask=mask, tgt_is_causal=True)
        changed = target.clone()
        changed[:, -1] = 0
        again = model(source, changed, tgt_mask=mask)
    assert core.allclose(result[:, :-1], again[:, :-1], atol=1e-6)  # no position attends to later positions
    assert not core.allclose(result[:, -1], again[:, -1])
    with pytest.raises(RuntimeError, match="differ in batch"):
        model(source[:2], target)
    with pytest.raises(RuntimeError, match="d_model=8"):
        model(source[..., :4], target)


@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer_encoder(norm_first):
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=norm_first, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)).eval()
    assert encoder.layers[0].linear1.weight is not encoder.layers[1].linear1.weight
    x = core.randn(3, 4, 8)
    with core.no_grad():
        y = encoder(x)
        h = x
        for block in encoder.layers:
            a = block.norm1(h) if norm_first else h
            h = h + block.self_attn(a, a, a)[0]
            h = h if norm_first else block.norm1(h)
            a = block.norm2(h) if norm_first else h
            h = h + block.linear2(F.gelu(block.linear1(a)))
            h = h if norm_first else block.norm2(h)
        assert core.allclose(y, encoder.norm(h), atol=1e-5)
    with pytest.raises(RuntimeError, match="'swish'"):
        nn.TransformerEncoderLayer(8, 2, activation="swish")


def test_a_transposed_convolution_makes_the_size_asked_for():
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    x = core.randn(1, 2, 4, 5)
    assert layer(x).shape == (1, 3, 7, 9)
    assert layer(x, output_size=(8, 9)).shape == (1, 3, 8, 9)
    assert layer(x, output_size=(1, 3, 8, 10)).shape == (1, 3, 8, 10)
    with pytest.raises(ValueError, match=r"ConvTranspose2d\(output_size\): .* from \(7, 9\) to \(8, 10\)"):
        layer(x, output_size=(9, 9))
    with pytest.raises(ValueError, match="padding_mode"):
        nn.ConvTranspose2d(2, 3, 3, padding_mode="reflect")
    with pytest.raises(TypeError, match="'same'"):
        nn.ConvTranspose2d(2, 3, 3, padding="same")


def test_pools_of_one_and_three_dimensions():
    x = core.randn(2, 3, 8)
    values, indices = nn.MaxPool1d(2, return_indices=True)(x)
    assert core.equal(values, x.gather(-1, indices))
    assert core.equal(values, nn.MaxPool1d(2)(x))
    assert core.equal(nn.AdaptiveMaxPool1d(4)(x), values)
    assert core.allclose(nn.AvgPool1d(8)(x), x.mean(-1, keepdim=True))
    cube = core.randn(2, 4, 4, 4)
    assert core.allclose(nn.AdaptiveAvgPool3d((1, 4, 4))(cube), cube.mean(1, keepdim=True))
    assert core.equal(nn.AdaptiveMaxPool3d(1)(cube), cube.amax((1, 2, 3), keepdim=True))


def test_attention_has_pytorch_s_memory_order_in_pytorch_s_random_stream() -> None:
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True), core.ones(3, 5, 8)
    strides = {}
    before = core.random_stream()
    for stream in ("philox", "torch"):
        core.set_random_stream(stream)
        try:
            strides[stream] = layer(x, x, x, need_weights=False)[0].stride()
        finally:
            core.set_random_stream(before)
    assert strides == {"philox": (40, 8, 1), "torch": (8, 24, 1)}


def test_attention_raises_the_errors_of_pytorch() -> None:
    layer = nn.MultiheadAttention(4, 2)
    x = core.rand(3, 2, 4)
    for arguments, masks in (
        ((x[0], x, x), {}),
        ((x, x[0], x), {}),
        ((x[0, 0], x[0, 0], x[0, 0]), {}),
        ((x, x, x[:2]), {}),
        ((core.rand(3, 2, 5), x, x), {}),
        ((x, x, x), {"key_padding_mask": core.zeros(3, 4, dtype=core.bool)}),
        ((x, x, x), {"key_padding_mask": core.zeros(2, 3, dtype=core.int32)}),
        ((x, x, x), {"attn_mask": core.zeros(3, 3, dtype=core.int32)}),
    ):
        with pytest.raises(AssertionError, match="multi_head_attention_forward"):
            layer(*arguments, **masks)
    with pytest.raises(RuntimeError, match="attn_mask"):
        layer(x, x, x, attn_mask=core.zeros(3, 4))


def test_attention_starts_as_a_subclass_says() -> None:
    class Zeros(nn.MultiheadAttention):
        def _reset_parameters(self) -> None:
            for parameter in self.parameters():
                nn.init.zeros_(parameter)

    assert not any(parameter.any() for parameter in Zeros(4, 2).parameters())
    attention = Zeros(4, 2)
    nn.init.ones_(attention.in_proj_weight)
    attention.reset_parameters()
    assert not attention.in_proj_weight.any()
