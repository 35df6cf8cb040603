"""Layers in the shapes of real networks, forward and in training, also against the peer's best settings."""

from __future__ import annotations

import math
from collections.abc import Iterator

from . import Row, fourier, linalg
from .ops.sizes import SIZES


def _factors(elements: int) -> tuple[int, int]:
    """Return the two-dimensional shape that stands for a size: (4, 4), (256, 256), (4096, 4096)."""
    side = math.isqrt(elements)
    return side, elements // side


def _softmax(label: str, n: int) -> Iterator[Row]:
    rows, columns = _factors(n)
    setup = f"F = torch.nn.functional; a = torch.tensor(data({rows}, {columns}))"
    backward = (
        f"{setup}; a.requires_grad_(); g = torch.tensor(data({rows}, {columns}))\n"
        "def step(function):\n    a.grad = None\n    function(a, dim=-1).backward(g)\n"
    )
    for name in ("softmax", "log_softmax"):
        yield Row(f"{name} {label}", f"F.{name}(a, dim=-1)", setup, group="softmax")
        yield Row(
            f"{name} forward + backward {label}",
            f"step(F.{name})",
            backward,
            result=f"[step(F.{name}), a.grad]",
            group="softmax",
        )
    loss = f"{setup}; t = torch.arange({rows}) % {columns}"
    yield Row(f"cross_entropy {label}", "F.cross_entropy(a, t)", loss, group="softmax")


def _matmul() -> Iterator[Row]:
    for side in (4, 64, 256, 1024):
        yield Row(
            f"mm {side}x{side}",
            "torch.mm(a, b)",
            f"a = torch.tensor(data({side}, {side})); b = torch.tensor(data({side}, {side}, seed=1))",
            numpy="np.matmul(a, b)",
            numpy_setup=f"a = data({side}, {side}); b = data({side}, {side}, seed=1)",
            group="matmul",
        )
    for rows, inner, columns in ((1, 4096, 4096), (8, 512, 512), (64, 4096, 4096)):
        setup = (
            f"F = torch.nn.functional; x = torch.tensor(data({rows}, {inner}))\n"
            f"w = torch.tensor(data({columns}, {inner}, seed=1)); b = torch.tensor(data({columns}))"
        )
        yield Row(
            f"linear {rows}x{inner}x{columns}",
            "F.linear(x, w, b)",
            setup,
            numpy="x @ w.T + b",
            numpy_setup=f"x, w, b = data({rows}, {inner}), data({columns}, {inner}, seed=1), data({columns})",
            group="matmul",
        )
    yield Row(
        "bmm 32x64x64",
        "torch.bmm(a, b)",
        "a = torch.tensor(data(32, 64, 64)); b = torch.tensor(data(32, 64, 64, seed=1))",
        numpy="a @ b",
        numpy_setup="a = data(32, 64, 64); b = data(32, 64, 64, seed=1)",
        group="matmul",
    )


# (label, batch, channels in, channels out, height = width, kernel, stride). The first two have 16 and 64 Ki
# elements, the last 16 Mi; the others are layers of ResNet-18.
_CONVOLUTIONS = (
    ("16", 1, 1, 1, 4, 3, 1),
    ("64Ki", 8, 8, 8, 32, 3, 1),
    ("stem 7x7 s2 3-64 @112", 4, 3, 64, 112, 7, 2),
    ("3x3 64 @56", 4, 64, 64, 56, 3, 1),
    ("3x3 s2 64-128 @56", 4, 64, 128, 56, 3, 2),
    ("1x1 64-256 @56", 4, 64, 256, 56, 1, 1),
    ("3x3 512 @7", 4, 512, 512, 7, 3, 1),
    ("16Mi", 8, 32, 32, 256, 3, 1),
)


def _convolution() -> Iterator[Row]:
    for label, batch, channels, filters, side, kernel, stride in _CONVOLUTIONS:
        operands = (
            f"F = torch.nn.functional\nx = torch.tensor(data({batch}, {channels}, {side}, {side}))\n"
            f"w = torch.tensor(data({filters}, {channels}, {kernel}, {kernel}, seed=1) - np.float32(1))\n"
            f"b = torch.tensor(data({filters}))\n"
        )
        best = (
            operands
            + "x = x.to(memory_format=torch.channels_last); w = w.to(memory_format=torch.channels_last)\n"
        )
        call = f"F.conv2d(x, w, b, stride={stride}, padding={kernel // 2})"
        step = (
            "for t in (x, w, b): t.requires_grad_()\n"
            f"def step():\n    x.grad = w.grad = b.grad = None\n    {call}.sum().backward()\n"
        )
        # The sums run over up to some thousand products and their order differs between libraries.
        for name, setup, statement, result in (
            (f"conv2d {label}", "", call, None),
            (f"conv2d forward + backward {label}", step, "step()", "[step(), x.grad, w.grad, b.grad]"),
        ):
            yield Row(
                name, statement, operands + setup, result=result, rtol=1e-3, atol=1e-2, group="convolution"
            )
            yield Row(
                f"{name} (peer channels_last)",
                statement,
                operands + setup,
                peer_setup=best + setup,
                result=result,
                rtol=1e-3,
                atol=1e-2,
                group="convolution, peer channels_last",
            )


def _image(label: str) -> tuple[int, int, int, int]:
    """Return the NCHW shape that stands for a size."""
    return {"16": (1, 1, 4, 4), "64Ki": (8, 8, 32, 32), "16Mi": (8, 32, 256, 256)}[label]


def _pool_and_norm(label: str, n: int) -> Iterator[Row]:
    shape = _image(label)
    channels = shape[1]
    image = f"F = torch.nn.functional; x = torch.tensor(data{shape})"
    grad = "\nx.requires_grad_()\ndef step(function):\n    x.grad = None\n    function().sum().backward()\n"
    norm = (
        f"\nw, b = torch.tensor(data({channels})), torch.tensor(data({channels}))"
        f"\nm, v = torch.zeros({channels}), torch.ones({channels})"
    )
    rows, columns = _factors(n)
    matrix = (
        f"F = torch.nn.functional; x = torch.tensor(data({rows}, {columns}))\n"
        f"w, b = torch.tensor(data({columns})), torch.tensor(data({columns}))"
    )
    for group, name, setup, call in (
        ("pool", "max_pool2d 2", image, "F.max_pool2d(x, 2)"),
        ("pool", "avg_pool2d 2", image, "F.avg_pool2d(x, 2)"),
        ("pool", "adaptive_avg_pool2d 1", image, "F.adaptive_avg_pool2d(x, 1)"),
        ("norm", "batch_norm, training", image + norm, "F.batch_norm(x, m, v, w, b, training=True)"),
        ("norm", "batch_norm, evaluation", image + norm, "F.batch_norm(x, m, v, w, b)"),
        ("norm", "layer_norm", matrix, f"F.layer_norm(x, ({columns},), w, b)"),
    ):
        yield Row(f"{name} {label}", call, setup, rtol=1e-3, group=group)
        yield Row(
            f"{name} forward + backward {label}",
            f"step(lambda: {call})",
            setup + grad,
            rtol=1e-3,
            atol=1e-3,
            result=f"[step(lambda: {call}), x.grad]",
            group=group,
        )


def _embedding(label: str, n: int) -> Iterator[Row]:
    """Yield rows of n / 64 look-ups of 64 columns in a table of 50,000 rows (for n = 16: in a 4 x 4 table)."""
    width = 4 if n == 16 else 64
    entries = 4 if n == 16 else 50_000
    setup = (
        f"F = torch.nn.functional; w = torch.tensor(data({entries}, {width}))\n"
        f"i = torch.tensor(np.random.default_rng(0).integers(0, {entries}, {n // width}))\n"
    )
    grad = "w.requires_grad_()\ndef step():\n    w.grad = None\n    F.embedding(i, w).sum().backward()\n"
    yield Row(f"embedding {label}", "F.embedding(i, w)", setup, group="embedding")
    yield Row(
        f"embedding forward + backward {label}",
        "step()",
        setup + grad,
        result="[step(), w.grad]",
        group="embedding",
    )
    yield Row(f"index_select {label}", "torch.index_select(w, 0, i)", setup, group="embedding")


def _recurrent() -> Iterator[Row]:
    """Yield rows of recurrent layers with shapes steps x batch x size; features and hidden states have the same size."""
    for name in ("LSTM", "GRU", "RNN"):
        for steps, batch, hidden in ((16, 8, 64), (32, 32, 512)):
            if name == "RNN" and hidden == 512:
                continue  # without gates, the states are chaotic here: differences in the last digits grow
            shape = f"{steps}x{batch}x{hidden}"
            setup = (
                f"m = torch.nn.{name}({hidden}, {hidden}); fill(m)\n"
                f"x = torch.tensor(data({steps}, {batch}, {hidden}))\n"
                "def step():\n    m.zero_grad(); m(x)[0].sum().backward()\n"
            )
            yield Row(
                f"{name} forward + backward {shape}",
                "step()",
                setup,
                result="[step(), [p.grad for p in m.parameters()]]",
                rtol=1e-2,
                atol=1e-2,
                group="recurrent",
            )


def _optimizer(label: str, n: int) -> Iterator[Row]:
    """Yield rows of one step over n elements of parameters: one tensor for the smallest size, otherwise 16 equal ones."""
    count = 1 if n == 16 else 16
    operands = (
        f"p = [torch.tensor(data({n // count}, seed=i), requires_grad=True) for i in range({count})]\n"
        f"for i, q in enumerate(p): q.grad = torch.tensor(data({n // count}, seed=i + 100))\n"
    )
    for name, arguments in (("SGD", "lr=1e-6, momentum=0.9"), ("Adam", "lr=1e-6"), ("AdamW", "lr=1e-6")):
        setup = operands + f"optimizer = torch.optim.{name}(p, {arguments})\n"
        fused = operands + f"optimizer = torch.optim.{name}(p, {arguments}, fused=True)\n"
        yield Row(
            f"{name} step {label}",
            "optimizer.step()",
            setup,
            result="[optimizer.step(), p]",
            group="optimizer",
        )
        yield Row(
            f"{name} step {label} (peer fused)",
            "optimizer.step()",
            setup,
            peer_setup=fused,
            result="[optimizer.step(), p]",
            group="optimizer, peer fused",
        )


def rows() -> Iterator[Row]:
    """Yield all rows, family by family."""
    for label, n in SIZES.items():
        yield from _softmax(label, n)
    yield from _matmul()
    yield from _convolution()
    yield from _recurrent()
    yield from linalg.rows()
    yield from fourier.rows()
    for family in (_pool_and_norm, _embedding, _optimizer):
        for label, n in SIZES.items():
            yield from family(label, n)


ROWS: tuple[Row, ...] = tuple(rows())
