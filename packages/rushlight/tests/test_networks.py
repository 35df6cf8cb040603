"""Two networks as users write them: training, saving, and comparison with PyTorch.

The networks are written once, for any library with PyTorch's names, which is their first argument.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rushlight

STEPS = 20


def resnet18(torch: Any, *, classes: int = 10, width: int = 8) -> Any:
    """A residual network of 18 layers for small images (He et al., Deep Residual Learning, 2015)."""
    nn = torch.nn
    F = torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.shortcut = nn.Sequential()
            if stride != 1 or inputs != outputs:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
                )

        def forward(self, x: Any) -> Any:
            y = F.relu(self.bn1(self.conv1(x)), inplace=True)
            y = self.bn2(self.conv2(y))
            y += self.shortcut(x)
            return F.relu(y)

    class ResNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(
                nn.Conv2d(3, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(3, stride=2, padding=1),
            )
            stages = []
            inputs = width
            for i in range(4):
                outputs = width << i
                stages += [Block(inputs, outputs, 1 if i == 0 else 2), Block(outputs, outputs, 1)]
                inputs = outputs
            self.stages = nn.Sequential(*stages)
            self.pool = nn.AdaptiveAvgPool2d((1, 1))
            self.head = nn.Linear(inputs, classes)

        def forward(self, x: Any) -> Any:
            x = self.pool(self.stages(self.stem(x)))
            return self.head(torch.flatten(x, 1))

    return ResNet()


GPT = SimpleNamespace(vocabulary=17, context=12, width=16, heads=2, layers=2)


def gpt(torch: Any, *, dropout: float = 0.0, size: SimpleNamespace = GPT) -> Any:
    """A transformer that predicts the next token, with pre-normalisation (Radford et al., GPT-2, 2019)."""
    nn = torch.nn
    F = torch.nn.functional

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(size.width, 3 * size.width)
            self.out = nn.Linear(size.width, size.width)

        def forward(self, x: Any) -> Any:
            batch, time, width = x.shape
            q, k, v = (
                part.view(batch, time, size.heads, width // size.heads).transpose(1, 2)
                for part in self.qkv(x).split(width, dim=2)
            )
            y = F.scaled_dot_product_attention(
                q, k, v, dropout_p=dropout if self.training else 0.0, is_causal=True
            )
            return self.out(y.transpose(1, 2).contiguous().view(batch, time, width))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln1 = nn.LayerNorm(size.width)
            self.attention = Attention()
            self.ln2 = nn.LayerNorm(size.width)
            self.mlp = nn.Sequential(
                nn.Linear(size.width, 4 * size.width),
                nn.GELU(),
                nn.Linear(4 * size.width, size.width),
                nn.Dropout(dropout),
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(size.vocabulary, size.width)
            self.positions = nn.Embedding(size.context, size.width)
            self.blocks = nn.ModuleList([Block() for _ in range(size.layers)])
            self.ln = nn.LayerNorm(size.width)
            self.head = nn.Linear(size.width, size.vocabulary, bias=False)
            self.head.weight = self.tokens.weight
            self.apply(self.initialise)

        @staticmethod
        def initialise(module: Any) -> None:
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.05)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

        def forward(self, tokens: Any, targets: Any = None) -> Any:
            time = tokens.size(1)
            x = self.tokens(tokens) + self.positions(torch.arange(time, device=tokens.device))
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.ln(x))
            if targets is None:
                return logits, None
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    return Gpt()


# --- data, as arrays, so that both libraries get the same values ---


def images(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return images of noise with random classes, which a network has to memorize."""
    return rng.normal(size=(6, 3, 16, 16)).astype(np.float32), rng.integers(0, 10, 6)


def sequences(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return sequences of consecutive numbers, and the same sequences shifted by one."""
    start = rng.integers(0, GPT.vocabulary, (8, 1))
    tokens = (start + np.arange(GPT.context + 1)) % GPT.vocabulary
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def train_images(torch: Any, net: Any, x: np.ndarray, y: np.ndarray, steps: int = STEPS) -> list[float]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_text(torch: Any, net: Any, x: np.ndarray, y: np.ndarray, steps: int = STEPS) -> list[float]:
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        _, loss = net(torch.from_numpy(x), torch.from_numpy(y))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


NETWORKS = {"resnet18": (resnet18, images, train_images), "gpt": (gpt, sequences, train_text)}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261121)


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    rushlight.manual_seed(20261121)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_losses_as_pytorch(name: str, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    make, data, train = NETWORKS[name]
    torch.manual_seed(20261121)
    theirs, ours = make(torch), make(rushlight)
    state = {key: rushlight.from_numpy(value.numpy().copy()) for key, value in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    x, y = data(rng)
    np.testing.assert_allclose(train(rushlight, ours, x, y), train(torch, theirs, x, y), rtol=0, atol=1e-4)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(
            ours.state_dict()[key].numpy(), value.numpy(), rtol=1e-2, atol=1e-3, err_msg=key
        )


def test_resnet_learns_images_by_heart(rng: np.random.Generator) -> None:
    net = resnet18(rushlight)
    x, y = images(rng)
    losses = train_images(rushlight, net, x, y)
    assert losses[0] > 1.5
    assert losses[-1] < 0.1
    with rushlight.no_grad():
        scores = net(rushlight.from_numpy(x))
    assert scores.shape == (6, 10)
    assert scores.argmax(1).tolist() == y.tolist()
    assert not scores.requires_grad
    # In evaluation mode the scores of an image do not depend on the other images of the batch.
    net.eval()
    together, alone = net(rushlight.from_numpy(x)), net(rushlight.from_numpy(x[:1]))
    np.testing.assert_allclose(together[:1].detach().numpy(), alone.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_gpt_learns_to_count(rng: np.random.Generator) -> None:
    net = gpt(rushlight, dropout=0.05)
    assert net.head.weight is net.tokens.weight
    x, y = sequences(rng)
    losses = train_text(rushlight, net, x, y, steps=80)
    assert losses[0] == pytest.approx(math.log(GPT.vocabulary), rel=0.1)
    assert losses[-1] < 0.3
    net.eval()
    tokens = rushlight.tensor([[3, 4, 5]])
    for _ in range(5):
        logits, _ = net(tokens)
        tokens = rushlight.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
    assert tokens.tolist() == [[3, 4, 5, 6, 7, 8, 9, 10]]


def test_gpt_does_not_see_the_future() -> None:
    net = gpt(rushlight).eval()
    tokens = rushlight.arange(10).view(1, 10)
    changed = tokens.clone()
    changed[0, 6:] = 1
    a, _ = net(tokens)
    b, _ = net(changed)
    np.testing.assert_allclose(a[:, :6].detach().numpy(), b[:, :6].detach().numpy(), rtol=1e-5, atol=1e-6)
    assert not rushlight.allclose(a[:, 6:], b[:, 6:])


@pytest.mark.parametrize("name", NETWORKS)
def test_a_checkpoint_goes_on_where_it_was_taken(name: str, rng: np.random.Generator, tmp_path: Any) -> None:
    make, data, train = NETWORKS[name]
    net = make(rushlight)
    x, y = data(rng)
    train(rushlight, net, x, y, steps=3)
    rushlight.save(net.state_dict(), tmp_path / "net.safetensors")
    other = make(rushlight)
    other.load_state_dict(rushlight.load(tmp_path / "net.safetensors"))
    assert train(rushlight, other, x, y, steps=3) == train(rushlight, net, x, y, steps=3)


def test_an_error_names_the_module() -> None:
    net = resnet18(rushlight)
    with pytest.raises(RuntimeError) as caught:
        net(rushlight.zeros(2, 4, 16, 16))
    assert any("stem.0" in note for note in caught.value.__notes__)
    text = gpt(rushlight)
    with pytest.raises(IndexError) as error:
        text(rushlight.tensor([[GPT.vocabulary]]))
    assert any("tokens" in note for note in error.value.__notes__)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_windows_of_zeros_have_a_gradient_of_zero(p: float) -> None:
    for pool, shape in (
        (rushlight.nn.functional.lp_pool1d, (1, 4)),
        (rushlight.nn.functional.lp_pool2d, (1, 4, 4)),
        (rushlight.nn.functional.lp_pool3d, (1, 4, 4, 4)),
    ):
        x = rushlight.zeros(shape)
        x[..., 2:] = 1.0
        x.requires_grad_()
        pool(x, p, 2).sum().backward()
        assert rushlight.isfinite(x.grad).all()
        assert not x.grad[..., :2].any()


@pytest.mark.parametrize("dtype", [rushlight.bfloat16, rushlight.float16], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("size", [(22, 14), (5, 3)])
def test_gradients_of_interpolated_numbers_of_16_bits_are_rounded_once(
    dtype: rushlight.dtype, mode: str, size: tuple[int, int]
) -> None:
    x = rushlight.randn(2, 3, 11, 7).to(dtype).requires_grad_()
    wide = x.detach().float().requires_grad_()
    seed = rushlight.randn(2, 3, *size).to(dtype)
    rushlight.nn.functional.interpolate(x, size, mode=mode).backward(seed)
    rushlight.nn.functional.interpolate(wide, size, mode=mode).backward(seed.float())
    assert x.grad is not None
    assert wide.grad is not None
    step = rushlight.finfo(dtype).eps / 2
    assert ((x.grad.float() - wide.grad).abs() <= step * wide.grad.abs() + 1e-6).all()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_without_indices_have_a_gradient(mode: str) -> None:
    weight = rushlight.randn(5, 3, requires_grad=True)
    none = rushlight.empty(0, dtype=rushlight.int64)
    for offsets in ([0, 0], [0], []):
        weight.grad = None
        starts = rushlight.tensor(offsets, dtype=rushlight.int64)
        bags = rushlight.nn.functional.embedding_bag(none, weight, starts, mode=mode)
        assert bags.tolist() == [[0.0] * 3] * len(offsets)
        bags.sum().backward()
        assert not weight.grad.any()


@pytest.mark.parametrize("averages", [False, True])
@pytest.mark.parametrize("shape", [(2, 4, 0, 4), (0, 4, 2, 4), (2, 0, 3, 3), (4, 0, 2)])
def test_instance_norm_of_nothing_has_a_gradient(shape: tuple[int, ...], averages: bool) -> None:
    channels = shape[-3]
    layer = rushlight.nn.InstanceNorm2d(channels, affine=True, track_running_stats=averages)
    x = rushlight.zeros(shape, requires_grad=True)
    result = layer(x)
    assert result.shape == shape
    result.sum().backward()
    assert layer.weight.grad.tolist() == [0.0] * channels
    assert layer.bias.grad.tolist() == [0.0] * channels
    assert x.grad.shape == shape
