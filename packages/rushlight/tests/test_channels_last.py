"""Networks in the channels-last format: activations and gradients keep it, and the values are those of row-major tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


class Block(nn.Module):
    """A residual block with two branches that are joined along the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.wide = nn.Conv2d(channels, channels, 3, padding=1, padding_mode="reflect", bias=False)
        self.deep = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.norm = nn.BatchNorm2d(2 * channels)
        self.shrink = nn.Conv2d(2 * channels, channels, 1)
        self.groups = nn.GroupNorm(4, channels)

    def forward(self, x: Any) -> Any:
        joined = torch.cat([self.wide(x), F.relu6(self.deep(x))], 1)
        return F.relu(x + self.groups(self.shrink(F.hardswish(self.norm(joined)))))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        Block(16),
        nn.Dropout(0.2),
        nn.Dropout2d(0.2),
        nn.AvgPool2d(2),
        nn.ReplicationPad2d(1),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.ZeroPad2d(1),
        Block(16),
        nn.PixelShuffle(2),
        nn.PixelUnshuffle(2),
        nn.ChannelShuffle(4),
        nn.Upsample(scale_factor=2),
        nn.ConvTranspose2d(16, 8, 2, stride=2),
        nn.AdaptiveMaxPool2d(6),
        nn.AdaptiveAvgPool2d(3),
        nn.Conv2d(8, 24, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, 5),
    )


def volumes() -> nn.Module:
    return nn.Sequential(
        nn.Conv3d(3, 16, 3, padding=1),
        nn.BatchNorm3d(16),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.ReplicationPad3d(1),
        nn.Upsample(scale_factor=2, mode="trilinear"),
        nn.GroupNorm(2, 16),
        nn.Dropout3d(0.1),
        nn.Conv3d(16, 4, 1),
        nn.MaxPool3d(2),
        nn.Flatten(),
        nn.LazyLinear(5),
    )


def is_in_format(t: Any) -> bool:
    """Return whether a tensor is channels-last.

    A tensor that may also be row-major counts as channels-last, and so do some channels of a channels-last tensor.
    """
    return t.dim() not in FORMATS or t.detach().clone().is_contiguous(memory_format=FORMATS[t.dim()])


def run(net: nn.Module, x: Any, check: bool) -> list[Any]:
    """Train one step. Return the result and all gradients; check the format of all tensors in the network if `check`."""
    wrong: list[str] = []
    children = dict(net.named_children())
    # The gradient of a flattened tensor is row-major.
    before_flatten = next(
        (f"{n}, {m}" for n, m in children.items() if isinstance(children.get(str(int(n) + 1)), nn.Flatten)),
        "",
    )

    def visit(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, given: Any, made: Any) -> None:
            for t in (*given, made):
                if not is_in_format(t):
                    wrong.append(f"an activation of {name}: {tuple(t.shape)}, {t.stride()}")
            if made.requires_grad and name != before_flatten:
                made.register_hook(lambda g: visit_gradient(name, g))

        return hook

    def visit_gradient(name: str, g: Any) -> None:
        if not is_in_format(g):
            wrong.append(f"the gradient of the result of {name}: {tuple(g.shape)}, {g.stride()}")

    handles = [m.register_forward_hook(visit(f"{n}, {m}")) for n, m in net.named_modules() if n]
    torch.manual_seed(3)
    y = net(x)
    F.cross_entropy(y, torch.arange(len(x)) % 5).backward()
    for handle in handles:
        handle.remove()
    if check:
        assert not wrong, "\n".join(wrong)
        for name, p in net.named_parameters():
            assert p.grad.stride() == p.stride() or not p.is_contiguous(), name
            assert is_in_format(p.grad), name
    return [y, x.grad, *(p.grad for p in net.parameters())]


@pytest.mark.parametrize(("make", "shape"), [(images, (4, 3, 20, 24)), (volumes, (2, 3, 4, 6, 8))])
def test_a_network_keeps_the_format(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    net, x = make(), torch.randn(*shape)
    net(x)  # creates lazy parameters
    wanted = run(net, x.clone().requires_grad_(), check=False)
    net.zero_grad()
    net.to(memory_format=FORMATS[len(shape)])
    found = run(net, x.to(memory_format=FORMATS[len(shape)]).requires_grad_(), check=True)
    for a, b in zip(found, wanted, strict=True):
        assert torch.allclose(a, b, 1e-3, 1e-4)


def test_evaluation_keeps_the_format() -> None:
    net = images().eval().to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 20, 24).to(memory_format=torch.channels_last)
    for layer in net[:-4]:
        x = layer(x)
        assert x.is_contiguous(memory_format=torch.channels_last), layer
        assert not x.is_contiguous(), layer


def test_a_traced_network_keeps_the_format() -> None:
    """A program, whose operators run without Python, returns the same values and strides."""
    torch.manual_seed(1)
    net = images()[:-2].eval().to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 20, 24).to(memory_format=torch.channels_last)
    wanted = net[:-3](x)
    program = torch.export.export(net[:-3], (x,))
    found = program.module()(x)
    assert found.stride() == wanted.stride()
    assert torch.allclose(found, wanted, 1e-4, 1e-5)
