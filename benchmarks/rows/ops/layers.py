"""Operators of networks: products, convolutions, pooling, norms, attention, recurrence, optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator

from .. import Row
from .sizes import SIZES, image, matrix


def rows(size: str) -> Iterator[Row]:
    for family in (_products, _images, _lines, _sequences, _optimizers):
        yield from family(size)


def _products(size: str) -> Iterator[Row]:
    side, _ = matrix(size)
    columns = min(side, 256)
    batch, m = {"16": (1, 4), "64Ki": (16, 64), "16Mi": (4096, 64)}[size]
    # Sums run over up to some thousand products, whose order differs between libraries.
    for name, statement, setup in (
        ("mm", "a @ b", f"a, b = torch.tensor(data{side, side}), torch.tensor(data{side, columns})"),
        (
            "linear, 8 rows",
            "torch.nn.functional.linear(x, w, b)",
            f"x, w = torch.tensor(data{8, side}), torch.tensor(data{side, side}); b = torch.tensor(data({side}))",
        ),
        ("mv", "w @ x", f"w, x = torch.tensor(data{side, side}), torch.tensor(data({side}))"),
        (
            "bmm",
            "torch.bmm(a, b)",
            f"a, b = torch.tensor(data{batch, m, m}), torch.tensor(data{batch, m, m})",
        ),
    ):
        yield Row(f"{name} {size}", statement, setup, rtol=1e-3, size=size, group="matmul")


def _images(size: str) -> Iterator[Row]:
    batch, channels, side, _ = image(size)
    setup = f"F = torch.nn.functional; x = torch.tensor(data{image(size)})\n"
    filters = f"w = torch.tensor(data{channels, channels, 3, 3} - np.float32(1)); b = torch.tensor(data({channels}))"
    norm = (
        f"w, b = torch.tensor(data({channels})), torch.tensor(data({channels}))\n"
        f"m, v = torch.zeros({channels}), torch.ones({channels})"
    )
    grid = f"g = torch.tensor(data{batch, side, side, 2} - np.float32(1))"
    for group, name, statement, operands in (
        ("convolution", "conv2d 3x3", "F.conv2d(x, w, b, padding=1)", filters),
        ("image", "max_pool2d 2", "F.max_pool2d(x, 2)", ""),
        ("image", "avg_pool2d 2", "F.avg_pool2d(x, 2)", ""),
        ("image", "interpolate bilinear", "F.interpolate(x, scale_factor=0.5, mode='bilinear')", ""),
        ("image", "grid_sample", "F.grid_sample(x, g, align_corners=False)", grid),
        ("norm", "batch_norm, training", "F.batch_norm(x, m, v, w, b, training=True)", norm),
        ("norm", "group_norm", f"F.group_norm(x, {min(channels, 4)}, w, b)", norm),
    ):
        yield Row(f"{name} {size}", statement, setup + operands, rtol=1e-3, atol=1e-3, size=size, group=group)


def _lines(size: str) -> Iterator[Row]:
    lines, columns = matrix(size)
    setup = f"F = torch.nn.functional; x = torch.tensor(data{lines, columns})\n"
    norm = f"w, b = torch.tensor(data({columns})), torch.tensor(data({columns}))"
    for group, name, statement, operands in (
        ("norm", "layer_norm", f"F.layer_norm(x, ({columns},), w, b)", norm),
        ("softmax", "softmax", "F.softmax(x, dim=-1)", ""),
        ("softmax", "cross_entropy", "F.cross_entropy(x, t)", f"t = torch.arange({lines}) % {columns}"),
    ):
        yield Row(f"{name} {size}", statement, setup + operands, rtol=1e-3, atol=1e-4, size=size, group=group)


def _sequences(size: str) -> Iterator[Row]:
    batch, heads, length, features = {
        "16": (1, 1, 4, 4),
        "64Ki": (1, 8, 128, 64),
        "16Mi": (16, 16, 1024, 64),
    }[size]
    yield Row(
        f"attention {size}",
        "F.scaled_dot_product_attention(q, k, v)",
        f"F = torch.nn.functional; q, k, v = (torch.tensor(data{batch, heads, length, features})"
        " - 1 for _ in range(3))",
        rtol=1e-3,
        size=size,
        group="sequence",
    )
    # The main operand of an LSTM is its gates, of shape (steps, batch, 4 x hidden).
    steps, batch, hidden = {"16": (2, 2, 1), "64Ki": (8, 16, 128), "16Mi": (64, 64, 1024)}[size]
    for name in ("LSTM", "GRU"):
        yield Row(
            f"{name} {size}",
            "m(x)",
            f"m = torch.nn.{name}({hidden}, {hidden}); fill(m); x = torch.tensor(data{steps, batch, hidden})\n"
            "for p in m.parameters(): p.requires_grad_(False)",
            result="m(x)[0]",
            rtol=1e-3,
            atol=1e-3,
            size=size,
            group="sequence",
        )


def _optimizers(size: str) -> Iterator[Row]:
    """Yield rows of one step over n elements of parameters: one tensor for the smallest size, otherwise 16 equal ones."""
    count = 1 if size == "16" else 16
    each = SIZES[size] // count
    operands = (
        f"p = [torch.tensor(data({each}, seed=i), requires_grad=True) for i in range({count})]\n"
        f"for i, q in enumerate(p): q.grad = torch.tensor(data({each}, seed=i + 100))\n"
    )
    for name, arguments in (("SGD", "lr=1e-6, momentum=0.9"), ("Adam", "lr=1e-6")):
        yield Row(
            f"{name} step {size}",
            "optimizer.step()",
            f"{operands}optimizer = torch.optim.{name}(p, {arguments})\n",
            result="[optimizer.step(), p]",
            size=size,
            group="optimizer",
        )
