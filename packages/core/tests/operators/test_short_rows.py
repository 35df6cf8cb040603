"""Elementwise operators over rows of few elements, of which several rows are computed by one call of a loop."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core import Tensor

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 31, 33, 65]
COUNTS = [1, 3, 31, 32, 500, 20000]  # of rows; the last has enough elements for two threads

Layout = Callable[[np.ndarray], tuple[np.ndarray, Tensor]]


def gaps(values: np.ndarray) -> tuple[np.ndarray, Tensor]:
    """Return the values with one more column, which no view contains."""
    wide = np.concatenate([values, values[:, :1]], 1)
    return values, core.from_numpy(wide)[:, :-1]


def columns(values: np.ndarray) -> tuple[np.ndarray, Tensor]:
    return values, core.from_numpy(np.ascontiguousarray(values.T)).t()


def one_column(values: np.ndarray) -> tuple[np.ndarray, Tensor]:
    return values[:, :1], core.from_numpy(np.ascontiguousarray(values[:, :1]))


def one_row(values: np.ndarray) -> tuple[np.ndarray, Tensor]:
    return values[:1], core.from_numpy(np.ascontiguousarray(values[:1]))


def windows(values: np.ndarray) -> tuple[np.ndarray, Tensor]:
    """Return overlapping rows: each begins one element after the previous one."""
    count, length = values.shape
    line = np.resize(values, count + length - 1)
    return np.lib.stride_tricks.sliding_window_view(line, length), core.from_numpy(line).unfold(0, length, 1)


def reversed_columns(values: np.ndarray) -> tuple[np.ndarray, Tensor]:
    return values[:, ::-1], core.from_numpy(values).flip(1)


def every_second(values: np.ndarray) -> tuple[np.ndarray, Tensor]:
    return values, core.from_numpy(np.repeat(values, 2, 1))[:, 1::2]


def every_third(values: np.ndarray) -> tuple[np.ndarray, Tensor]:
    return values, core.from_numpy(np.repeat(values, 3, 1))[:, 2::3]


LAYOUTS: list[Layout] = [
    gaps,
    every_second,
    every_third,
    columns,
    one_column,
    one_row,
    windows,
    reversed_columns,
]


def numbers(count: int, length: int, dtype: str, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-50, 50, (count, length)).astype(dtype)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_of_any_layout(layout: Layout, length: int) -> None:
    for count in COUNTS:
        for dtype, other in [("float32", "float32"), ("int16", "float32"), ("float64", "int32")]:
            a, x = layout(numbers(count, length, dtype, 1))
            b = numbers(count, length, other, 2)
            y = core.from_numpy(b)
            expected = a.astype("float64") * b - a
            np.testing.assert_array_equal((x * y - x).numpy(), expected, err_msg=f"{count} {dtype} {other}")
            np.testing.assert_array_equal((y * x - x).numpy(), expected, err_msg=f"{count} {other} {dtype}")


@pytest.mark.parametrize("length", LENGTHS)
def test_results_with_gaps(length: int) -> None:
    for count in COUNTS:
        for dtype in ("float32", "int64", "float16"):
            a = numbers(count, length, "float32", 3)
            whole = core.full((count, length + 2), -99, dtype=getattr(core, dtype))
            core.add(core.from_numpy(a.astype(dtype)), 1, out=whole[:, 1:-1])
            np.testing.assert_array_equal(whole[:, 1:-1].numpy(), (a + 1).astype(dtype))
            assert (whole[:, [0, -1]] == -99).all(), (count, dtype)
            whole[:, 1:-1].copy_(core.from_numpy(a)).add_(1).mul_(2)
            np.testing.assert_array_equal(whole[:, 1:-1].numpy(), (2 * (a + 1)).astype(dtype))
            assert (whole[:, [0, -1]] == -99).all(), (count, dtype)
            steps = core.full((count, 2 * length), -99, dtype=getattr(core, dtype))
            steps[:, ::2].copy_(core.from_numpy(a)).add_(1).mul_(2)
            np.testing.assert_array_equal(steps[:, ::2].numpy(), (2 * (a + 1)).astype(dtype))
            assert (steps[:, 1::2] == -99).all(), (count, dtype)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 2, 0)])
def test_short_dimensions_between_long_ones(order: tuple[int, int, int], length: int) -> None:
    values = np.random.default_rng(4).integers(-50, 50, (70, 40, length)).astype("float32")
    x = core.from_numpy(values)[:, :-1].permute(order)
    a = values[:, :-1].transpose(order)
    bias = np.arange(a.shape[1], dtype="float64")[:, None]
    np.testing.assert_array_equal((x + core.from_numpy(bias)).numpy(), a + bias.astype("float32"))
    np.testing.assert_array_equal(x.clone(memory_format=core.contiguous_format).numpy(), a)


@pytest.mark.parametrize("length", [2, 3, 7, 8, 20])
def test_operators_that_treat_some_values_apart(length: int) -> None:
    """exp and log compute large and small values by other code, for whole blocks of a row or for single elements."""
    values = np.random.default_rng(5).uniform(-120, 120, (9000, length + 1)).astype("float32")
    x = core.from_numpy(values)[:, :-1]
    dense = core.from_numpy(np.ascontiguousarray(values[:, :-1]))
    for name in ("exp", "log", "tanh", "lgamma", "sin", "reciprocal", "erf"):
        op = getattr(core, name)
        np.testing.assert_allclose(op(x).numpy(), op(dense).numpy(), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16", "float16", "complex64"])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8])
def test_scans_of_rows(length: int, dtype: str) -> None:
    for count in [0, *COUNTS]:
        a = numbers(count, length, "int64", 3) % 7
        x = core.from_numpy(a.astype(dtype))
        result = "int64" if dtype == "int16" else dtype
        assert np.array_equal(core.cumsum(x, 1).numpy(), a.cumsum(1).astype(result))
        b = a % 3  # products of at most 2^8
        assert np.array_equal(
            core.cumprod(core.from_numpy(b.astype(dtype)), 1).numpy(), b.cumprod(1).astype(result)
        )
    special = np.array(
        [[np.nan, 1, 2, 3], [np.inf, 1, -np.inf, 3], [1, np.inf, 0, 2], [1e30, 1e30, -1e30, 1]]
    )
    if dtype in ("float32", "float64") and length <= 4:
        c = special[:, :length].astype(dtype)
        with np.errstate(all="ignore"):
            sums, products = c.astype(np.float64).cumsum(1), c.astype(np.float64).cumprod(1)
            assert np.array_equal(
                core.cumsum(core.from_numpy(c), 1).numpy(), sums.astype(dtype), equal_nan=True
            )
            assert np.array_equal(
                core.cumprod(core.from_numpy(c), 1).numpy(), products.astype(dtype), equal_nan=True
            )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_all_orders_of_few_elements(length: int, dtype: str) -> None:
    """Sort all rows of a few values. Equal elements, such as both zeros, keep their order, and NaN comes last."""
    values = [-np.inf, -0.0, 0.0, 2.0, np.nan] if dtype != "int32" else [-3, 0, 1, 2**31 - 1, -(2**31)]
    a = np.array(list(itertools.product(values, repeat=length))).astype(dtype)
    order = np.argsort(a, 1, kind="stable")
    expected = np.take_along_axis(a, order, 1)
    for k in range(1, length + 1):
        found = core.topk(core.from_numpy(a), k, 1, largest=False)
        assert np.array_equal(found.indices.numpy(), order[:, :k])
    sorted_rows, indices = core.sort(core.from_numpy(a), 1)
    assert np.array_equal(indices.numpy(), order)
    assert np.array_equal(sorted_rows.numpy().view(f"i{a.itemsize}"), expected.view(f"i{a.itemsize}"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 7, 8, 9])
def test_products_of_few_steps(k: int, dtype: str) -> None:
    for n in (1, 2, 5, 8, 17, 64, 513, 20001):
        a = numbers(k, n, dtype, 4)
        v, addend = numbers(1, k, dtype, 5)[0], numbers(1, n, dtype, 6)[0]
        a[0, n // 2] = np.nan
        x, y = core.from_numpy(a), core.from_numpy(v)
        for columns_apart in (x.t(), core.from_numpy(np.repeat(a, 2, 1))[:, ::2].t(), x.t().contiguous()):
            assert np.array_equal(core.mv(columns_apart, y).numpy(), a.T @ v, equal_nan=True)
        got = core.addmv(core.from_numpy(addend), x.t(), y, beta=3, alpha=2)
        assert np.array_equal(got.numpy(), 3 * addend + 2 * (a.T @ v), equal_nan=True)
        two = core.from_numpy(np.stack([v, -v]))
        assert np.array_equal((two @ x).numpy(), np.stack([v @ a, -v @ a]), equal_nan=True)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("shape", [(1, 2), (3, 2), (500, 3), (7, 40)])
def test_padding_of_rows(shape: tuple[int, int], mode: str) -> None:
    names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    for dtype in ("float32", "uint8", "complex128"):
        a = numbers(*shape, "int64", 7).astype(dtype)
        for before, after in [(1, 1), (0, 1), (1, 0)]:
            got = core._pad(core.from_numpy(a), [before, after], mode=mode).numpy()
            assert np.array_equal(got, np.pad(a, [(0, 0), (before, after)], mode=names[mode]))
