"""Law: the forward derivative of every operator is the transpose of its gradient, for any tangents."""

from __future__ import annotations

import contextlib
import math
import random
import warnings
from typing import Any

import pytest
from vmap_samples import OPS, Call, calls

import rushlight_core as core
from rushlight_autograd.transforms import jvp, vjp
from rushlight_autograd.tree import flatten
from rushlight_core import Tensor
from rushlight_core.codegen.model import Op

DIFFERENTIABLE = [op for op in OPS if op.differentiable]
# The row of `padding_idx` has no gradient, but it does have a forward derivative, as in PyTorch.
BY_CONVENTION = {("embedding", "t(5, 3), t(2, 3, dtype=int32, low=0, high=4), 1")}
ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)


def like(x: Tensor, rng: random.Random) -> Tensor:
    """Return random numbers in the shape of `x`, without any symmetry."""
    return core.tensor([rng.uniform(-1, 1) for _ in range(x.numel())], dtype=core.float64).reshape(x.shape)


def product(xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> float:
    return sum((x * y).sum().item() for x, y in zip(xs, ys, strict=True))


def products(call: Call) -> tuple[float, float] | None:
    """Return the two products that must be equal; None if the sample has no derivative in one of the modes."""
    positions = [i for i, x in enumerate(call.tensors) if x.dtype == core.float64]

    def function(*moving: Tensor) -> tuple[Tensor, ...]:
        given = list(call.tensors)
        for i, x in zip(positions, moving, strict=True):
            given[i] = x.clone()
        results: list[Any] = flatten(call.function(*given))[0]
        return tuple(y for y in results if isinstance(y, Tensor) and y.dtype == core.float64)

    primals = tuple(call.tensors[i] for i in positions)
    rng = random.Random(7)
    tangents = tuple(like(x, rng) for x in primals)
    with warnings.catch_warnings(), contextlib.suppress(*ERRORS):
        warnings.simplefilter("ignore")
        results, moved = jvp(function, primals, tangents)
        weights = tuple(like(y, rng) for y in results)
        return product(moved, weights), product(vjp(function, *primals)[1](weights), tangents)
    return None


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_forward_is_the_transpose_of_reverse(op: Op) -> None:
    for sample in op.samples:
        for call in calls(op, sample.text):
            found = products(call)
            if found is None or not all(map(math.isfinite, found)):
                continue  # not differentiable in both modes, or at a pole
            near = found[0] == pytest.approx(found[1], rel=1e-7, abs=1e-8)
            assert near == ((op.name, sample.text) not in BY_CONVENTION), (sample.text, *found)
