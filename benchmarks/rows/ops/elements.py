"""Operators that read and write memory in order: element by element, reductions, copies, random numbers."""

from __future__ import annotations

from collections.abc import Iterator

from .. import Row
from .sizes import SIZES, matrix


def rows(size: str) -> Iterator[Row]:
    for family in (_pointwise, _reductions, _copies, _random):
        yield from family(size)


def _pointwise(size: str) -> Iterator[Row]:
    n = SIZES[size]
    one = f"a = torch.tensor(data({n}) - np.float32(1))"
    two = f"{one}; b = torch.tensor(data({n}))"
    numpy_one, numpy_two = one.replace("torch.tensor", ""), two.replace("torch.tensor", "")
    positive = f"a = torch.tensor(data({n}) * np.float32(0.6))"  # within (0, 1)
    for name, statement, setup, numpy in (
        ("add", "a + b", two, "a + b"),
        ("div", "a / b", two, "a / b"),
        ("add_", "a.add_(b)", two, None),
        ("relu", "torch.relu(a)", one, "np.maximum(a, 0)"),
        ("exp", "torch.exp(a)", one, "np.exp(a)"),
        ("tanh", "torch.tanh(a)", one, "np.tanh(a)"),
        ("pow", "torch.pow(b, a)", two, "np.power(b, a)"),
        ("gelu", "torch.nn.functional.gelu(a)", one, None),
        ("lgamma", "torch.lgamma(a)", positive, None),
        ("special.i1", "torch.special.i1(a)", one, None),
        ("special.ndtri", "torch.special.ndtri(a)", positive, None),
        ("where", "torch.where(c, a, b)", f"{two}; c = a > 0", None),
        ("comparison", "a > b", two, "a > b"),
        ("to float64", "a.to(torch.float64)", one, "a.astype(np.float64)"),
    ):
        yield Row(
            f"{name} {size}",
            statement,
            setup,
            numpy=numpy,
            numpy_setup=numpy_two if "b" in (numpy or "") else numpy_one,
            size=size,
            group="pointwise",
        )
    lines, columns = matrix(size)
    setup = f"a = torch.tensor(data{lines, columns}); b = torch.tensor(data({columns}))"
    yield Row(
        f"add a row {size}",
        "a + b",
        setup,
        numpy="a + b",
        numpy_setup=setup.replace("torch.tensor", ""),
        size=size,
        group="pointwise",
    )


def _reductions(size: str) -> Iterator[Row]:
    setup = f"a = torch.tensor(data{matrix(size)})"
    for name, statement, numpy in (
        ("sum", "a.sum()", "a.sum()"),
        ("amax dim 1", "a.amax(1)", "a.max(1)"),
        ("argmax dim 1", "a.argmax(1)", "a.argmax(1)"),
        ("var dim 1", "a.var(1)", "a.var(1, ddof=1)"),
        ("logsumexp dim 1", "a.logsumexp(1)", None),
        ("cumsum dim 1", "a.cumsum(1)", "a.cumsum(1)"),
    ):
        yield Row(
            f"{name} {size}",
            statement,
            setup,
            numpy=numpy,
            numpy_setup=setup.replace("torch.tensor", ""),
            rtol=1e-3,
            size=size,
            group="reduction",
        )


def _copies(size: str) -> Iterator[Row]:
    lines, columns = matrix(size)
    one = f"a = torch.tensor(data{lines, columns})"
    two = f"a, b = torch.tensor(data{lines // 2, columns}), torch.tensor(data{lines // 2, columns})"
    cube = f"a = torch.tensor(data{lines // 4, 4, columns})"
    for name, statement, setup in (
        ("copy of the transpose", "a.t().contiguous()", one),
        ("permute, contiguous", "a.permute(2, 0, 1).contiguous()", cube),
        ("cat", "torch.cat((a, b), 1)", two),
        ("flip", "a.flip(1)", one),
    ):
        yield Row(f"{name} {size}", statement, setup, size=size, group="copy")


def _random(size: str) -> Iterator[Row]:
    # The streams of two libraries differ, so their shapes are compared.
    n = SIZES[size]
    half = f"a = torch.full(({n},), 0.5)"
    for name, statement, setup in (
        ("rand", f"torch.rand({n})", ""),
        ("randn", f"torch.randn({n})", ""),
        ("bernoulli", "torch.bernoulli(a)", half),
        ("dropout", "torch.nn.functional.dropout(a, 0.5)", half),
    ):
        yield Row(
            f"{name} {size}",
            statement,
            setup,
            result=f"list(({statement}).shape)",
            size=size,
            group="random",
        )
