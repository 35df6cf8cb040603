"""Layers and losses with their gradients, compared with PyTorch for the same weights and inputs, if it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

Make = Callable[[Any], Any]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261121)


def both(array: np.ndarray, grad: bool = False) -> tuple[Any, Any]:
    pair = rushlight.from_numpy(array.copy()), torch.from_numpy(array.copy())
    return tuple(t.requires_grad_() if grad else t for t in pair)  # type: ignore[return-value]


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def close(ours: Any, theirs: Any, what: str) -> None:
    assert (ours is None) == (theirs is None), what
    if theirs is not None:
        np.testing.assert_allclose(
            ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=2e-5, err_msg=what
        )


# For each layer, a function that creates it, and the shape of its input.
LAYERS: dict[str, tuple[Make, tuple[int, ...]]] = {
    "Linear": (lambda nn: nn.Linear(3, 4), (5, 2, 3)),
    "Linear without bias": (lambda nn: nn.Linear(3, 4, bias=False), (3,)),
    "Conv1d": (lambda nn: nn.Conv1d(3, 4, 3, padding="same"), (2, 3, 7)),
    "Conv2d": (lambda nn: nn.Conv2d(4, 6, 3, 2, 1, 1, 2), (2, 4, 9, 9)),
    "Conv2d dilated": (lambda nn: nn.Conv2d(2, 3, (3, 2), dilation=2, padding=(2, 0)), (2, 2, 8, 7)),
    "Conv2d depthwise": (lambda nn: nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False), (2, 4, 6, 6)),
    "Conv2d unbatched": (lambda nn: nn.Conv2d(2, 3, 3), (2, 5, 5)),
    "Conv2d reflect": (lambda nn: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), (1, 2, 5, 5)),
    "Conv3d": (lambda nn: nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
    "ConvTranspose1d": (lambda nn: nn.ConvTranspose1d(3, 4, 3, 2, 1), (2, 3, 5)),
    "ConvTranspose2d": (lambda nn: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2), (2, 4, 5, 4)),
    "ConvTranspose3d": (lambda nn: nn.ConvTranspose3d(2, 3, 2, dilation=2, bias=False), (1, 2, 3, 3, 2)),
    "MaxPool1d": (lambda nn: nn.MaxPool1d(2, 1), (2, 3, 8)),
    "MaxPool3d": (lambda nn: nn.MaxPool3d(2), (1, 2, 4, 4, 4)),
    "AvgPool1d": (lambda nn: nn.AvgPool1d(3, padding=1), (2, 3, 8)),
    "AvgPool3d": (lambda nn: nn.AvgPool3d(2, divisor_override=3), (1, 2, 4, 4, 4)),
    "AdaptiveAvgPool1d": (lambda nn: nn.AdaptiveAvgPool1d(3), (2, 3, 8)),
    "AdaptiveAvgPool3d": (lambda nn: nn.AdaptiveAvgPool3d((2, None, 1)), (1, 2, 4, 3, 5)),
    "AdaptiveMaxPool1d": (lambda nn: nn.AdaptiveMaxPool1d(3), (2, 3, 8)),
    "AdaptiveMaxPool2d": (lambda nn: nn.AdaptiveMaxPool2d((3, None)), (2, 3, 8, 5)),
    "AdaptiveMaxPool3d": (lambda nn: nn.AdaptiveMaxPool3d(2), (1, 2, 4, 3, 5)),
    "MaxPool2d": (lambda nn: nn.MaxPool2d(3, 2, 1), (2, 3, 8, 8)),
    "MaxPool2d ceil": (lambda nn: nn.MaxPool2d(2, ceil_mode=True), (2, 3, 7, 7)),
    "AvgPool2d": (lambda nn: nn.AvgPool2d(2, None, 1, True, False), (2, 3, 7, 7)),
    "AdaptiveAvgPool2d": (lambda nn: nn.AdaptiveAvgPool2d((3, None)), (2, 3, 7, 8)),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(3), (6, 3)),
    "BatchNorm1d of sequences": (lambda nn: nn.BatchNorm1d(3), (4, 3, 5)),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(3, 1e-3, None), (2, 3, 4, 4)),
    "BatchNorm2d plain": (lambda nn: nn.BatchNorm2d(3, affine=False), (2, 3, 4, 4)),
    "BatchNorm2d stateless": (lambda nn: nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 4, 4)),
    "BatchNorm3d": (lambda nn: nn.BatchNorm3d(2), (2, 2, 3, 2, 2)),
    "LayerNorm": (lambda nn: nn.LayerNorm((4, 5)), (2, 4, 5)),
    "LayerNorm without bias": (lambda nn: nn.LayerNorm(5, bias=False), (2, 5)),
    "RMSNorm": (lambda nn: nn.RMSNorm(5), (2, 5)),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 4), (2, 4, 3)),
    "PReLU": (lambda nn: nn.PReLU(4), (2, 4, 3)),
    "Flatten": (lambda nn: nn.Flatten(1, 2), (2, 3, 4, 2)),
    "Unflatten": (lambda nn: nn.Unflatten(1, (2, -1)), (2, 6)),
    "GLU": (lambda nn: nn.GLU(), (3, 4)),
    "Softmax": (lambda nn: nn.Softmax(1), (3, 4)),
    "LogSoftmax": (lambda nn: nn.LogSoftmax(-1), (3, 4)),
    "Softmin": (lambda nn: nn.Softmin(0), (3, 4)),
    "GELU tanh": (lambda nn: nn.GELU("tanh"), (10,)),
    "ReLU in place": (lambda nn: nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True)), (2, 3)),
    "Dropout of nothing": (lambda nn: nn.Dropout(0.0), (2, 3)),
    "MultiheadAttention": (lambda nn: self_attention(nn), (4, 3, 8)),
    "MultiheadAttention with bias_kv": (
        lambda nn: self_attention(nn, add_bias_kv=True, add_zero_attn=True, batch_first=True),
        (4, 3, 8),
    ),
    "MultiheadAttention of other widths": (lambda nn: cross_attention(nn), (4, 3, 8)),
    "TransformerDecoderLayer": (lambda nn: decode(nn, nn.TransformerDecoderLayer(8, 2, 16, 0.0)), (4, 3, 8)),
    "TransformerDecoder, norms first": (
        lambda nn: decode(
            nn,
            nn.TransformerDecoder(
                nn.TransformerDecoderLayer(8, 2, 16, 0.0, "gelu", norm_first=True, batch_first=True),
                2,
                nn.LayerNorm(8),
            ),
        ),
        (4, 3, 8),
    ),
    "Transformer": (lambda nn: decode(nn, nn.Transformer(8, 2, 1, 2, 16, 0.0)), (4, 3, 8)),
    "RNN": (lambda nn: first_of(nn, nn.RNN(3, 4, 2, "relu")), (5, 2, 3)),
    "RNN both ways": (lambda nn: first_of(nn, nn.RNN(3, 4, bidirectional=True, bias=False)), (5, 2, 3)),
    "LSTM": (lambda nn: first_of(nn, nn.LSTM(3, 4, 2)), (5, 2, 3)),
    "LSTM both ways, batch first": (
        lambda nn: first_of(nn, nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True)),
        (5, 2, 3),
    ),
    "LSTM projected": (lambda nn: first_of(nn, nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True)), (5, 2, 3)),
    "LSTM unbatched": (lambda nn: first_of(nn, nn.LSTM(3, 4)), (5, 3)),
    "GRU": (lambda nn: first_of(nn, nn.GRU(3, 4, 2, bidirectional=True)), (5, 2, 3)),
    "GRU without bias": (lambda nn: first_of(nn, nn.GRU(3, 4, bias=False, batch_first=True)), (5, 2, 3)),
    "RNNCell": (lambda nn: nn.RNNCell(3, 4), (2, 3)),
    "RNNCell of a vector": (lambda nn: nn.RNNCell(3, 4, False, "relu"), (3,)),
    "LSTMCell": (lambda nn: first_of(nn, nn.LSTMCell(3, 4)), (2, 3)),
    "GRUCell": (lambda nn: nn.GRUCell(3, 4), (2, 3)),
    "Upsample": (lambda nn: nn.Upsample(scale_factor=2, mode="bicubic", align_corners=True), (1, 2, 3, 4)),
    "UpsamplingNearest2d": (lambda nn: nn.UpsamplingNearest2d(5), (1, 2, 3, 4)),
    "UpsamplingBilinear2d": (lambda nn: nn.UpsamplingBilinear2d(scale_factor=3), (1, 2, 3, 4)),
    "InstanceNorm1d": (lambda nn: nn.InstanceNorm1d(3, affine=True), (2, 3, 5)),
    "InstanceNorm1d unbatched": (lambda nn: nn.InstanceNorm1d(3), (3, 5)),
    "InstanceNorm2d tracking": (
        lambda nn: nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
        (2, 3, 4, 2),
    ),
    "InstanceNorm3d": (lambda nn: nn.InstanceNorm3d(2, track_running_stats=True), (2, 2, 3, 2, 2)),
    "LocalResponseNorm": (lambda nn: nn.LocalResponseNorm(2), (2, 4, 3)),
    "LPPool2d": (lambda nn: nn.LPPool2d(2, 3, 1), (2, 3, 5, 5)),
    "ZeroPad2d": (lambda nn: nn.ZeroPad2d((1, 2, 0, 1)), (2, 3, 4, 5)),
    "ConstantPad1d": (lambda nn: nn.ConstantPad1d(2, 1.5), (2, 3, 4)),
    "ReflectionPad2d": (lambda nn: nn.ReflectionPad2d(2), (2, 3, 4, 5)),
    "ReplicationPad3d": (lambda nn: nn.ReplicationPad3d(1), (2, 3, 2, 4, 3)),
    "CircularPad1d": (lambda nn: nn.CircularPad1d((3, 1)), (2, 3, 4)),
    "AlphaDropout of nothing": (lambda nn: nn.AlphaDropout(0.0), (2, 3)),
    "Dropout3d of nothing": (lambda nn: nn.Dropout3d(0.0), (2, 3, 2, 2, 2)),
    "Bilinear": (lambda nn: decode(nn, nn.Bilinear(4, 4, 3)), (2, 4)),
    "TransformerEncoderLayer": (lambda nn: nn.TransformerEncoderLayer(8, 2, 16, 0.0), (4, 3, 8)),
    **{
        name: (lambda nn, name=name: getattr(nn, name)(), (4, 5))
        for name in (
            *("ReLU", "ReLU6", "GELU", "SiLU", "Mish", "ELU", "CELU", "SELU", "LeakyReLU", "Hardtanh"),
            *(
                "Hardswish",
                "Hardsigmoid",
                "Sigmoid",
                "Tanh",
                "Softplus",
                "Softsign",
                "LogSigmoid",
                "Identity",
            ),
        )
    },
    "Threshold": (lambda nn: nn.Threshold(0.1, 2.0), (4, 5)),
    "Softshrink": (lambda nn: nn.Softshrink(0.3), (4, 5)),
    "Hardshrink": (lambda nn: nn.Hardshrink(0.3), (4, 5)),
    "Tanhshrink": (lambda nn: nn.Tanhshrink(), (4, 5)),
    "RReLU": (lambda nn: nn.RReLU(0.2, 0.2), (4, 5)),
    "Softmax2d": (lambda nn: nn.Softmax2d(), (2, 3, 2, 2)),
}


def first_of(nn: Any, layer: Any) -> Any:
    """Return a layer that returns the first result of `layer`, to which the mean squares of the other results are added."""

    class FirstOf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Any) -> Any:
            first, rest = self.layer(x)
            for other in rest if isinstance(rest, tuple) else (rest,):
                first = first + (other * other).mean()
            return first

    return FirstOf()


def decode(nn: Any, layer: Any) -> Any:
    """Return a layer that calls a layer of two sequences with a sequence and a scaled copy of it."""

    class Decode(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Any) -> Any:
            return self.layer(x, x * 0.5 + 0.1)

    return Decode()


def cross_attention(nn: Any) -> Any:
    class CrossAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, bias=False, kdim=3, vdim=5)

        def forward(self, x: Any) -> Any:
            result, weights = self.attention(x, x[..., :3], x[..., 3:], average_attn_weights=False)
            return result + weights.mean()

    return CrossAttention()


def self_attention(nn: Any, **options: Any) -> Any:
    class SelfAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, **options)

        def forward(self, x: Any) -> Any:
            result, weights = self.attention(x, x, x)
            return result + (weights * weights).mean()

    return SelfAttention()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, training: bool, rng: np.random.Generator) -> None:
    make, shape = LAYERS[name]
    torch.manual_seed(20261121)
    ours, theirs = make(rushlight.nn).train(training), make(torch.nn).train(training)
    ours.load_state_dict({k: rushlight.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    for _ in range(2):  # in the second pass, the running statistics have changed
        x, y = both(normal(rng, *shape), grad=True)
        result, expected = ours(x), theirs(y)
        close(result, expected, "result")
        g, h = both(normal(rng, *expected.shape))
        result.backward(g)
        expected.backward(h)
        close(x.grad, y.grad, "input.grad")
    for (key, p), (_, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        close(p.grad, q.grad, f"{key}.grad")
    for key, value in theirs.state_dict().items():
        close(ours.state_dict()[key], value, key)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}, {"max_norm": 1.0}])
def test_embedding(options: dict[str, Any], rng: np.random.Generator) -> None:
    table = normal(rng, 6, 4)
    ours, theirs = rushlight.nn.Embedding(6, 4, **options), torch.nn.Embedding(6, 4, **options)
    a, b = both(table)
    ours.load_state_dict({"weight": a})
    theirs.load_state_dict({"weight": b})
    x, y = both(np.array([[1, 2, 2], [0, 5, 1]]))
    result, expected = ours(x), theirs(y)
    close(result, expected, "result")
    g, h = both(normal(rng, *expected.shape))
    result.backward(g)
    expected.backward(h)
    close(ours.weight.grad, theirs.weight.grad, "weight.grad")
    close(ours.weight, theirs.weight, "weight")


def _probabilities(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(0.05, 0.95, shape).astype(np.float32)


def _classes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(0, 5, shape)


# For each loss: its input, its target and its options. Arrays are converted to tensors of each library.
LOSSES: dict[str, tuple[str, Callable[[Any], tuple[Any, Any, dict[str, Any]]]]] = {
    "classes": ("CrossEntropyLoss", lambda r: (normal(r, 4, 5), _classes(r, 4), {})),
    "classes of pixels": ("CrossEntropyLoss", lambda r: (normal(r, 2, 5, 3, 3), _classes(r, 2, 3, 3), {})),
    "one class": ("CrossEntropyLoss", lambda r: (normal(r, 5), _classes(r), {})),
    "weighted classes": (
        "CrossEntropyLoss",
        lambda r: (normal(r, 4, 5), _classes(r, 4), {"weight": _probabilities(r, 5)}),
    ),
    "ignored classes": (
        "CrossEntropyLoss",
        lambda r: (normal(r, 6, 5), np.array([0, 1, -100, 3, -100, 4]), {}),
    ),
    "smoothed classes": (
        "CrossEntropyLoss",
        lambda r: (
            normal(r, 6, 5),
            np.array([0, 1, 2, 3, 2, 4]),
            {"label_smoothing": 0.2, "ignore_index": 2, "weight": _probabilities(r, 5)},
        ),
    ),
    "probabilities of classes": (
        "CrossEntropyLoss",
        lambda r: (
            normal(r, 4, 5),
            r.dirichlet(np.ones(5), 4).astype(np.float32),
            {"label_smoothing": 0.1, "weight": _probabilities(r, 5)},
        ),
    ),
    "likelihood": ("NLLLoss", lambda r: (normal(r, 4, 5), _classes(r, 4), {})),
    "weighted likelihood": (
        "NLLLoss",
        lambda r: (
            normal(r, 2, 5, 3),
            _classes(r, 2, 3),
            {"weight": _probabilities(r, 5), "ignore_index": 1},
        ),
    ),
    "squares": ("MSELoss", lambda r: (normal(r, 3, 4), normal(r, 3, 4), {})),
    "magnitudes": ("L1Loss", lambda r: (normal(r, 3, 4), normal(r, 3, 4), {})),
    "smooth": ("SmoothL1Loss", lambda r: (normal(r, 3, 4), normal(r, 3, 4), {"beta": 0.5})),
    "smooth, sharp": ("SmoothL1Loss", lambda r: (normal(r, 3, 4), normal(r, 3, 4), {"beta": 0.0})),
    "huber": ("HuberLoss", lambda r: (normal(r, 3, 4), normal(r, 3, 4), {"delta": 0.5})),
    "binary": ("BCELoss", lambda r: (_probabilities(r, 3, 4), _probabilities(r, 3, 4), {})),
    "binary, certain": (
        "BCELoss",
        lambda r: (np.array([0.0, 1.0, 0.5], np.float32), np.array([0.0, 1.0, 1.0], np.float32), {}),
    ),
    "weighted binary": (
        "BCELoss",
        lambda r: (_probabilities(r, 3, 4), _probabilities(r, 3, 4), {"weight": _probabilities(r, 4)}),
    ),
    "logits": ("BCEWithLogitsLoss", lambda r: (normal(r, 3, 4) * 50, _probabilities(r, 3, 4), {})),
    "weighted logits": (
        "BCEWithLogitsLoss",
        lambda r: (
            normal(r, 3, 4),
            _probabilities(r, 3, 4),
            {"weight": _probabilities(r, 3, 4), "pos_weight": _probabilities(r, 4)},
        ),
    ),
    "divergence": ("KLDivLoss", lambda r: (normal(r, 3, 4), _probabilities(r, 3, 4), {})),
    "divergence of logs": (
        "KLDivLoss",
        lambda r: (normal(r, 3, 4), normal(r, 3, 4), {"log_target": True}),
    ),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.filterwarnings("ignore:reduction")
def test_losses(name: str, reduction: str, rng: np.random.Generator) -> None:
    loss, data = LOSSES[name]
    input, target, options = data(rng)
    x, y = both(input, grad=True)
    t, u = both(np.asarray(target))
    given = {k: both(v) if isinstance(v, np.ndarray) else (v, v) for k, v in options.items()}
    ours = getattr(rushlight.nn, loss)(reduction=reduction, **{k: v[0] for k, v in given.items()})
    theirs = getattr(torch.nn, loss)(reduction=reduction, **{k: v[1] for k, v in given.items()})
    result, expected = ours(x, t), theirs(y, u)
    close(result, expected, "loss")
    result.sum().backward()
    expected.sum().backward()
    close(x.grad, y.grad, "input.grad")


def test_the_mean_of_no_class_is_nan_in_both() -> None:
    x, y = both(np.zeros((2, 3), np.float32))
    t, u = both(np.array([-100, -100]))
    close(
        rushlight.nn.functional.cross_entropy(x, t), torch.nn.functional.cross_entropy(y, u), "nothing counts"
    )


@pytest.mark.parametrize("causal", [True, False])
def test_attention(causal: bool, rng: np.random.Generator) -> None:
    arrays = [normal(rng, 2, 3, 5, 4) for _ in range(3)]
    ours, theirs = zip(*(both(a, grad=True) for a in arrays), strict=True)
    mask = None if causal else both(rng.random((5, 5)) < 0.7)
    results = []
    for lib, qkv, i in ((rushlight, ours, 0), (torch, theirs, 1)):
        attention = lib.nn.functional.scaled_dot_product_attention
        results.append(attention(*qkv, attn_mask=mask[i] if mask else None, is_causal=causal))
    close(results[0], results[1], "result")
    g, h = both(normal(rng, 2, 3, 5, 4))
    results[0].backward(g)
    results[1].backward(h)
    for a, b, name in zip(ours, theirs, "qkv", strict=True):
        close(a.grad, b.grad, f"{name}.grad")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
        ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
        ("SGD", {"lr": 0.05, "fused": True}),
        ("Adam", {"lr": 0.02, "amsgrad": True}),
        ("Adam", {"lr": 0.02, "fused": True}),
        ("AdamW", {"lr": 0.02, "weight_decay": 0.1, "foreach": False}),
        ("AdamW", {"lr": 0.02, "weight_decay": 0.1, "fused": True}),
        ("RMSprop", {"lr": 0.005, "weight_decay": 0.01}),
        ("RMSprop", {"lr": 0.005, "momentum": 0.5, "centered": True}),
        ("Adagrad", {"lr": 0.05, "lr_decay": 0.1, "initial_accumulator_value": 0.1}),
        ("Adadelta", {"lr": 5.0, "weight_decay": 0.01}),
        ("Adamax", {"lr": 0.02, "weight_decay": 0.01}),
        ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
        ("NAdam", {"lr": 0.02, "weight_decay": 0.1}),
        ("RAdam", {"lr": 0.05, "weight_decay": 0.1}),
        ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
        ("Rprop", {"lr": 0.002}),
        ("ASGD", {"lr": 0.05, "t0": 3, "lambd": 0.01, "weight_decay": 0.01}),
    ],
)
def test_training(name: str, options: dict[str, Any], rng: np.random.Generator) -> None:
    def build(lib: Any) -> Any:
        return lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.LayerNorm(8), lib.nn.Tanh(), lib.nn.Linear(8, 2))

    torch.manual_seed(20261121)
    theirs, ours = build(torch), build(rushlight)
    ours.load_state_dict({k: rushlight.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    x, y = normal(rng, 16, 4), normal(rng, 16, 2)
    losses: list[list[float]] = []
    for lib, net in ((rushlight, ours), (torch, theirs)):
        optimizer = getattr(lib.optim, name)(net.parameters(), **options)
        scheduler = lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
        history = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = lib.nn.functional.mse_loss(net(lib.from_numpy(x)), lib.from_numpy(y))
            loss.backward()
            optimizer.step()
            scheduler.step()
            history.append(loss.item())
        losses.append(history)
    np.testing.assert_allclose(losses[0], losses[1], rtol=0, atol=1e-4)
    assert losses[0][-1] < losses[0][0]
