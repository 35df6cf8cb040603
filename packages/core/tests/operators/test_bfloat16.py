"""Products of bfloat16 compared with float32: sizes that are not multiples of a tile, transposes, batches and addends."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core

SHAPES = [
    (64, 64, 64),
    (65, 33, 70),
    (1, 1024, 300),
    (31, 2, 600),
    (7, 129, 257),
    (40, 1023, 1),
    (1, 5000, 9),
]


def matrix(rows: int, columns: int, transposed: bool) -> core.Tensor:
    shape = (columns, rows) if transposed else (rows, columns)
    values = core.tensor(np.random.default_rng([rows, columns]).normal(size=shape)).bfloat16()
    return values.t() if transposed else values


def near(got: core.Tensor, expected: core.Tensor) -> bool:
    return float((got.float() - expected).abs().max()) <= 2**-7 * float(expected.abs().max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)])
def test_products(shape: tuple[int, int, int], transposed: tuple[bool, bool]) -> None:
    m, k, n = shape
    a, b = matrix(m, k, transposed[0]), matrix(k, n, transposed[1])
    assert (a @ b).dtype is core.bfloat16
    assert near(a @ b, a.float() @ b.float())


def test_batches_and_addends() -> None:
    x, y = (core.tensor(np.random.default_rng(k).normal(size=(3, 41, 41))).bfloat16() for k in range(2))
    addend = core.ones(41, dtype=core.bfloat16)
    wide = x.float() @ y.float()
    assert near(x @ y, wide)
    assert near(
        x[1:, :40, 1:] @ y[:1, 1:, ::2].expand(2, 40, 21), x.float()[1:, :40, 1:] @ y.float()[:1, 1:, ::2]
    )
    assert near(core.baddbmm(addend, x, y, alpha=2, beta=3), 2 * wide + 3)
    assert near(core.addmm(addend, x[0], y[0].t()), x[0].float() @ y[0].float().t() + 1)
    weight = core.tensor(np.random.default_rng(5).normal(size=(50, 41))).bfloat16()
    assert near(
        core.linear(x, weight, weight[:, 0]), core.linear(x.float(), weight.float(), weight[:, 0].float())
    )


def test_infinities_and_nan() -> None:
    x = core.ones(40, 40, dtype=core.bfloat16)
    x[3, 7], x[5, 1] = float("inf"), float("nan")
    result = x @ core.ones(40, 40, dtype=core.bfloat16)
    assert bool(core.isinf(result[3]).all())
    assert bool(core.isnan(result[5]).all())
    assert result[0].tolist() == [40.0] * 40
