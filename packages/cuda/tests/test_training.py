"""Networks that train on the plug-in as on the CPU."""

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
    found, other = train("cuda")
    assert losses[3] < losses[0]
    assert found == pytest.approx(losses, rel=1e-3)
    for name, value in state.items():
        torch.testing.assert_close(other[name], value, rtol=1e-3, atol=1e-4)
