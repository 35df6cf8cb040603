"""Training of networks on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional

pytestmark = pytest.mark.usefixtures("driver")


class Block(nn.Module):
    """A residual block."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.short = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norm1(self.first(x)))
        return functional.relu(self.norm2(self.second(y)) + self.short(x))


def residual() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        Block(4, 6, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3),
    )  # fmt: skip


def depthwise() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.GroupNorm(2, 4), nn.ReLU6(),
        nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.BatchNorm2d(4), nn.ReLU6(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(4 * 2 * 2, 3),
    )  # fmt: skip


@pytest.mark.parametrize("network", [residual, depthwise])
def test_losses_and_parameters_are_those_of_the_cpu(network):
    def train(device: str) -> tuple[list[float], dict[str, torch.Tensor]]:
        torch.manual_seed(0)
        model = network().to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
        x = torch.randn(6, 1, 8, 8).to(device)
        target = (torch.arange(6) % 3).to(device)
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        losses.append(functional.cross_entropy(model(x), target).item())
        return losses, {name: value.cpu() for name, value in model.state_dict().items()}

    losses, state = train("cpu")
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        found, other = train("cuda")
    assert losses[3] < losses[0]
    assert found == pytest.approx(losses, rel=1e-3)
    for name, value in state.items():
        torch.testing.assert_close(other[name], value, rtol=1e-3, atol=1e-4)


class Attention(nn.Module):
    """A causal attention block of a language model."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.reshape(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.project(self.norm1(x)).chunk(3, -1)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Language(nn.Module):
    """A small GPT."""

    def __init__(self, words: int = 11, length: int = 7, width: int = 8) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(Attention(width, 2), Attention(width, 2))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, words, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.words(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        return self.out(self.norm(self.blocks(y)))

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(self(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


class Graph(nn.Module):
    """Message passing along the edges of a graph, with all operators that read and write by index."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.nodes = nn.Embedding(11, width, padding_idx=0)
        self.message, self.score = nn.Linear(2 * width, width), nn.Linear(width, 1)

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        nodes = self.nodes(x.flatten())
        source = torch.arange(len(nodes), device=x.device)
        target = (source * 5 + 1) % len(nodes) // 2
        messages = functional.relu(self.message(torch.cat([nodes[source], nodes.index_select(0, target)], 1)))
        summed = torch.zeros_like(nodes).index_add(0, target, messages)
        meant = torch.zeros_like(nodes).scatter_reduce(
            0, target[:, None].expand_as(messages), messages, "mean", include_self=False
        )
        picked = torch.zeros_like(nodes).scatter_add(1, (target % 3)[:, None].expand(-1, 2), messages[:, :2])
        changed = summed.index_put([target], meant[source], accumulate=True).index_copy(
            0, source[:3], picked[:3]
        )
        return (self.score(changed).squeeze(1) - x.flatten() / 5).square().mean()


@pytest.mark.parametrize("network", [Language, Graph])
def test_models_of_tables_train_as_on_the_cpu(network):
    def train(device: str) -> tuple[list[float], dict[str, torch.Tensor]]:
        torch.manual_seed(0)
        # In float64, because Adam makes full-sized steps even for gradients that are only rounding errors, such as those of
        # the keys' biases.
        model = network().double().to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        x = (torch.arange(4 * 8) * 7 % 11).reshape(4, 8).to(device)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = model.loss(x)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        return losses, {name: value.cpu() for name, value in model.state_dict().items()}

    losses, state = train("cpu")
    found, other = train("cuda")
    assert losses[-1] < losses[0]
    assert found == pytest.approx(losses, rel=1e-9)
    for name, value in state.items():
        torch.testing.assert_close(other[name], value, rtol=1e-6, atol=1e-8)
