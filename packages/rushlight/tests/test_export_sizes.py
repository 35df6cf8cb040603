"""Models of rushlight.nn with inputs of different sizes: one program computes all sizes."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.export import Dim, export


class GPT(nn.Module):
    """A small GPT as in docs/small-gpt.md: attention is one operator, and positions come from arange."""

    def __init__(self, width: int = 16, heads: int = 2, context: int = 32) -> None:
        super().__init__()
        self.heads = heads
        self.tokens, self.positions = nn.Embedding(13, width), nn.Embedding(context, width)
        self.norm, self.qkv, self.out = (
            nn.LayerNorm(width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )
        self.head = nn.Linear(width, 13, bias=False)

    def forward(self, ids: Any) -> Any:
        batch, length = ids.shape
        x = self.tokens(ids) + self.positions(torch.arange(length))
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm(x)).split(x.shape[-1], dim=-1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).contiguous().view(batch, length, -1))
        return self.head(x[:, -1])


class ViT(nn.Module):
    """A vision transformer with patches of 4 by 4 pixels, a class token, and positions for each row and column."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, width, 32, 32))
        self.block = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True)

    def forward(self, image: Any) -> Any:
        x = self.patches(image)
        batch, width, rows, columns = x.shape
        x = x + self.positions[:, :, :rows, :columns]
        x = torch.cat([self.token.expand(batch, -1, -1), x.flatten(2).transpose(1, 2)], dim=1)
        assert x.shape == (batch, rows * columns + 1, width)
        return self.block(x)[:, 0]


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 4, 7, 2, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.down = nn.ModuleList(nn.Conv2d(4, 4, 3, 2, 1) for _ in range(3))
        self.head = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for layer in self.down:
            x = F.relu(layer(x))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def check(model: Any, shapes: Any, example: Any, others: list[Any]) -> Any:
    program = export(model, (example,), dynamic_shapes=shapes)
    run = program.module()
    for x in (example, *others):
        assert torch.equal(run(x), model(x)), x.shape
    return program


def test_batch_and_length_of_a_gpt() -> None:
    torch.manual_seed(0)
    sizes = [(2, 2), (3, 7), (9, 32), (2, 31)]
    shapes = {"ids": {0: Dim("batch"), 1: Dim("length", max=32)}}
    program = check(
        GPT().eval(), shapes, torch.randint(0, 13, (2, 5)), [torch.randint(0, 13, size) for size in sizes]
    )
    with pytest.raises(ValueError, match="size 'length' is 33 in dimension 1 of input"):
        program.module()(torch.zeros(2, 33, dtype=torch.int64))


def test_height_and_width_of_a_vit() -> None:
    torch.manual_seed(0)
    shapes = {"image": {2: 4 * Dim("height", max=32), 3: 4 * Dim("width", max=32)}}
    others = [torch.randn(2, 3, 4 * rows, 4 * columns) for rows, columns in ((2, 2), (9, 4), (5, 30))]
    program = check(ViT().eval(), shapes, torch.randn(2, 3, 16, 20), others)
    assert "height*width+1" in str(program)
    with pytest.raises(ValueError, match=r"is 18, but must be 4\*height\+0"):
        program.module()(torch.randn(2, 3, 18, 20))


def test_images_of_any_size() -> None:
    torch.manual_seed(0)
    shapes = {"x": {0: Dim("n", min=1), 2: Dim("h", min=33), 3: Dim("w", min=33)}}
    others = [torch.randn(n, 3, h, w) for n, h, w in ((1, 33, 64), (5, 65, 33), (2, 127, 100), (2, 96, 161))]
    check(Residual().eval(), shapes, torch.randn(2, 3, 64, 80), others)


def test_a_batch_in_training() -> None:
    torch.manual_seed(0)
    model, twin = Residual().train(), Residual().train()
    twin.load_state_dict(model.state_dict())
    run = export(model, (torch.randn(2, 3, 40, 40),), dynamic_shapes=({0: Dim("n")},)).module()
    for n in (2, 7, 4):
        x = torch.randn(n, 3, 40, 40)
        assert torch.equal(run(x), twin(x))


class UNet(nn.Module):
    """Two levels, whose results are resized to the size of the level above or are padded to it."""

    def __init__(self, pads: bool) -> None:
        super().__init__()
        self.pads = pads
        self.layers = nn.ModuleList(nn.Conv2d(i, 2, 3, padding=1) for i in (1, 2, 2, 4))

    def up(self, x: Any, above: Any) -> Any:
        if not self.pads:
            return F.interpolate(x, size=above.shape[-2:], mode="bilinear")
        x = F.interpolate(x, scale_factor=2)
        rows, columns = (above.shape[d] - x.shape[d] for d in (2, 3))
        return F.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])

    def forward(self, x: Any) -> Any:
        a = self.layers[0](x)
        b = self.layers[1](F.max_pool2d(a, 2))
        c = self.layers[2](F.max_pool2d(b, 2))
        d = self.layers[3](torch.cat([self.up(c, b), b], 1))
        return torch.cat([self.up(d, a), a], 1)


@pytest.mark.parametrize("pads", [False, True])
def test_a_unet_with_odd_sizes(pads: bool) -> None:
    shapes = {"x": {2: Dim("h", min=12), 3: Dim("w", min=12)}}
    others = [torch.randn(1, 1, h, w) for h, w in ((12, 12), (13, 35), (64, 31), (95, 18), (18, 95))]
    check(UNet(pads).eval(), shapes, torch.randn(1, 1, 37, 29), others)


def test_images_that_are_enlarged_by_a_fraction() -> None:
    shapes = {"input": {2: Dim("h"), 3: Dim("w")}}
    model = nn.Upsample(scale_factor=1.5, mode="bilinear")
    others = [torch.randn(1, 1, h, w) for h, w in ((2, 3), (13, 20), (20, 13), (40, 39))]
    check(model, shapes, torch.randn(1, 1, 20, 13), others)


# Conditions on sizes ---------------------------------------------------------------------------------------------------

LIMIT = 777


class Deciding(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.limit = 300
        self.shape = (60, 2)
        self.config = SimpleNamespace(block_size=211)

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


CONDITIONS = {
    "a far number": (lambda self, x: x * 2 if x.shape[0] < 5000 else x * 3, 4999),
    "one number": (lambda self, x: x * 2 if len(x) != 10 else x * 3, 9),
    "a number first": (lambda self, x: x if x.size(0) < 700 else x.relu(), 699),
    "an attribute": (lambda self, x: x if x.shape[0] <= self.limit else x[: self.limit], 300),
    "a tuple": (lambda self, x: x if x.shape[0] <= self.shape[0] else x.neg(), 60),
    "a configuration": (lambda self, x: x if x.shape[0] <= self.config.block_size else x.neg(), 211),
    "a global": (lambda self, x: x if x.shape[0] < LIMIT else x.neg(), 776),
    "a branch without operators": (lambda self, x: x.relu() if x.shape[0] < 1234 else x, 1233),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_on_a_size_is_found(name: str) -> None:
    function, last = CONDITIONS[name]
    model, x = Deciding(function), torch.randn(4, 3)
    with pytest.raises(RuntimeError, match=r"capture: (no expression of|the program depends on)"):
        export(model, (x,), dynamic_shapes=({0: Dim("n")},))
    with pytest.raises(RuntimeError, match=r"capture: (no expression of|the program depends on)"):
        export(model, (torch.randn(8, 3),), dynamic_shapes=({0: 2 * Dim("n")},))
    run = export(model, (x,), dynamic_shapes=({0: Dim("n", max=last)},)).module()
    for size in (2, last // 2, last):
        x = torch.randn(size, 3)
        assert torch.equal(run(x), model(x))


def test_the_smaller_of_a_size_and_a_number() -> None:
    model = Deciding(lambda self, x: x[: min(x.shape[0], 400)] * min(len(x), 5) + max(len(x) - 9, 0))
    for shapes in ({0: Dim("n")}, {0: 2 * Dim("n", min=1)}):
        run = export(model, (torch.randn(8, 3),), dynamic_shapes=(shapes,)).module()
        for size in (2, 4, 6, 8, 10, 12, 398, 400, 402, 1000, 6000):
            x = torch.randn(size, 3)
            assert torch.equal(run(x), model(x))


def test_conditions_that_do_not_change_the_program() -> None:
    def function(self: Any, x: Any) -> Any:
        if x.shape[0] > 250:  # for sizes above the limit, the model raises an error
            raise ValueError("too long")
        return x if x.shape[1] == 3 else x.neg()

    seen: list[Any] = []
    before = sys.getprofile()
    run = export(Deciding(function), (torch.randn(4, 3),), dynamic_shapes=({0: Dim("n")},)).module()
    assert sys.getprofile() is before
    x = torch.randn(250, 3)
    assert torch.equal(run(x), x)
    sys.setprofile(lambda *event: seen.append(event))
    try:
        export(Deciding(function), (torch.randn(4, 3),), dynamic_shapes=({0: Dim("n")},))
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(before)
    assert seen


def test_large_arguments_are_not_made_for_a_condition() -> None:
    sizes: list[int] = []

    def function(self: Any, x: Any) -> Any:
        sizes.append(x.shape[0])
        return x if x.shape[0] < 1_000_000_000 else x.neg()

    export(Deciding(function), (torch.randn(4, 3),), dynamic_shapes=({0: Dim("n")},))
    assert max(sizes) < 1000
