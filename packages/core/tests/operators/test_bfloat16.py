"""Products, convolutions and attention in bfloat16, compared with float32, at sizes that are not multiples of a tile."""

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
    (16, 2000, 16),
    (33, 8300, 20),  # several chunks along k
    (1100, 500, 40),  # several blocks of rows
    (20, 40, 2100),  # several ranges of columns
]


def matrix(rows: int, columns: int, transposed: bool) -> core.Tensor:
    shape = (columns, rows) if transposed else (rows, columns)
    values = core.tensor(np.random.default_rng([rows, columns]).normal(size=shape)).bfloat16()
    return values.t() if transposed else values


def near(got: core.Tensor, expected: core.Tensor) -> bool:
    return float((got.float() - expected).abs().max()) <= 2**-7 * float(expected.abs().max())


@pytest.mark.parametrize("dtype", [core.float16, core.bfloat16])
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8])
@pytest.mark.parametrize(("k", "n"), [(100, 33), (37, 600), (3000, 10), (1, 1100)])
def test_few_rows(rows: int, k: int, n: int, dtype: core.dtype) -> None:
    for transposed in (False, True):
        a, b = (t.to(dtype) for t in (matrix(rows, k, transposed), matrix(k, n, transposed)))
        wide, addend = a.float() @ b.float(), core.ones(n, dtype=dtype)
        assert near(a @ b, wide)
        assert near(b.t() @ a.t(), wide.t())
        assert near(core.addmm(addend, a, b, beta=3, alpha=2), 2 * wide + 3)
        batch = core.stack([a, a + 1])
        assert near(core.bmm(batch, core.stack([b, b])), core.matmul(batch.float(), b.float()))


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


def test_empty_batches() -> None:
    for rows in (1, 40):
        x, y = (core.empty(0, *shape, dtype=core.bfloat16) for shape in ((rows, 40), (40, 40)))
        assert (x @ y).shape == (0, rows, 40)


def test_infinities_and_nan() -> None:
    x = core.ones(40, 40, dtype=core.bfloat16)
    x[3, 7], x[5, 1] = float("inf"), float("nan")
    result = x @ core.ones(40, 40, dtype=core.bfloat16)
    assert bool(core.isinf(result[3]).all())
    assert bool(core.isnan(result[5]).all())
    assert result[0].tolist() == [40.0] * 40


def test_a_row_depends_neither_on_other_rows_nor_on_threads() -> None:
    a, b = matrix(600, 700, False), matrix(700, 300, False)
    whole, before = a @ b, core.get_num_threads()
    try:
        core.set_num_threads(2)
        assert core.equal(a @ b, whole)
    finally:
        core.set_num_threads(before)
    assert core.equal(a[100:130] @ b[:, 5:200], whole[100:130, 5:200])


def random(*shape: int) -> core.Tensor:
    return core.tensor(np.random.default_rng(shape).normal(size=shape)).bfloat16()


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "groups"), [(3, 1, 1, 1), (1, 1, 0, 1), (3, 2, 1, 2), (5, 1, 2, 1)]
)
def test_convolutions(
    kernel: int, stride: int, padding: int, groups: int, transposed: bool, channels_last: bool
) -> None:
    x = random(3, 12, 15, 13)
    if channels_last:
        x = x.to(memory_format=core.channels_last)
    weight, bias = random(12, 12 // groups, kernel, kernel), random(12)
    options = ([stride] * 2, [padding] * 2, [1, 1], transposed, [0, 0], groups)
    result = core.convolution(x, weight, bias, *options)
    assert result.dtype is core.bfloat16
    assert near(result, core.convolution(x.float(), weight.float(), bias.float(), *options))
    assert near(
        core.convolution(x, weight, None, *options),
        core.convolution(x.float(), weight.float(), None, *options),
    )
    grad = random(*result.shape)
    operands = (grad, x, weight)
    got = core._C._call_boxed("convolution_backward", *operands, *options, [1, 1, 1])
    wide = core._C._call_boxed("convolution_backward", *(t.float() for t in operands), *options, [1, 1, 1])
    for one, expected in zip(got, wide, strict=True):
        assert one.dtype is core.bfloat16
        assert near(one, expected)


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (7, 1), (1, 7)])
def test_gradients_of_taps_that_read_only_padding_are_zero(size: tuple[int, int]) -> None:
    x, weight = random(4, 64, *size), random(64, 64, 3, 3)
    options = ([2, 2], [1, 1], [1, 1], False, [0, 0], 1)
    grad = core.ones_like(core.convolution(x, weight, None, *options))
    freed = [
        core.full((n,), -3e29, dtype=core.bfloat16) for n in (18432, 36864, 73728, 147456) for _ in range(4)
    ]
    del freed
    operands = (grad, x, weight)
    got = core._C._call_boxed("convolution_backward", *operands, *options, [1, 1, 0])
    wide = core._C._call_boxed("convolution_backward", *(t.float() for t in operands), *options, [1, 1, 0])
    assert near(got[0], wide[0])
    assert near(got[1], wide[1])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [2, 4])
def test_attention(causal: bool, heads: int) -> None:
    query, key, value = random(2, 4, 70, 24), random(2, heads, 450, 24), random(2, heads, 450, 40)
    mask = None if causal else random(4, 70, 450)
    options = {"attn_mask": mask, "is_causal": causal, "enable_gqa": heads != 4}
    got = core.scaled_dot_product_attention(query, key, value, **options)
    options["attn_mask"] = None if mask is None else mask.float()
    assert near(got, core.scaled_dot_product_attention(query.float(), key.float(), value.float(), **options))
