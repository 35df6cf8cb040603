"""The memory order of results equals PyTorch's, if it is installed, for inputs in any order."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")

Layout = tuple[
    tuple[int, ...], tuple[int, ...], bool
]  # sizes, the order of dimensions in memory, whether it is expanded


def layouts(rng: random.Random, ndim: int, operands: int) -> list[Layout]:
    """Return layouts with shapes that broadcast, and with dimensions in any order in memory."""
    full = [rng.choice([1, 2, 3]) for _ in range(ndim)]
    expanded = rng.random() < 0.5
    return [
        (tuple(1 if rng.random() < 0.3 else n for n in full), tuple(rng.sample(range(ndim), ndim)), expanded)
        for _ in range(operands)
    ]


def make(library: Any, layout: Layout, full: tuple[int, ...]) -> Any:
    sizes, order, expanded = layout
    lying = library.ones([sizes[d] for d in order]).permute([order.index(d) for d in range(len(sizes))])
    return lying.expand(full) if expanded else lying


def steps(t: Any) -> tuple[int, ...]:
    """Return the strides of the dimensions with more than one element."""
    return tuple(stride for stride, n in zip(t.stride(), t.shape, strict=True) if n > 1)


def results(library: Any, given: list[Layout], full: tuple[int, ...]) -> list[Any]:
    x, *more = (make(library, layout, full) for layout in given)
    joint = x + more[0] if more else x * 2
    return [
        joint,
        x.neg(),
        x.clone(),
        library.empty_like(x),
        x.to(library.float64),
        library.where(x > 0, x, joint),
    ]


@pytest.mark.parametrize(("ndim", "operands"), list(itertools.product((1, 2, 3, 4), (1, 2))))
def test_results_lie_as_in_pytorch(ndim: int, operands: int) -> None:
    rng = random.Random(10 * ndim + operands)
    for _ in range(300):
        given = layouts(rng, ndim, operands)
        full = tuple(max(sizes) for sizes in zip(*(layout[0] for layout in given), strict=True))
        if operands > 1 and all(make(torch, layout, full).is_contiguous() for layout in given):
            continue  # row-major here; if no input has the full shape, PyTorch orders equal strides by size
        ours, theirs = results(rushlight, given, full), results(torch, given, full)
        assert [steps(t) for t in ours] == [steps(t) for t in theirs], (given, full)
