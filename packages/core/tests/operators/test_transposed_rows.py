"""Operators over short rows that are transposed, so that one vector holds elements of several rows."""

import numpy as np
import pytest

import rushlight_core as core

LENGTHS = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100]
COUNTS = [1, 7, 8, 9, 16, 17, 100]  # of rows; a vector has 4 to 16 lanes
DTYPES = ["float32", "float64"]


def normal(count: int, length: int, dtype: str) -> np.ndarray:
    return (4 * np.random.default_rng(0).standard_normal((count, length))).astype(dtype)


def softmax(values: np.ndarray) -> np.ndarray:
    terms = np.exp(values - values.max(1, keepdims=True))
    return terms / terms.sum(1, keepdims=True)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax(dtype: str, length: int) -> None:
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-13, "atol": 1e-14}
    for count in COUNTS:
        a = normal(count, length, dtype)
        x = core.from_numpy(a)
        y = softmax(a.astype("float64"))
        out, log = core.softmax(x, 1), core.log_softmax(x, 1)
        np.testing.assert_allclose(out.numpy(), y, **tolerance)
        np.testing.assert_allclose(log.numpy(), np.log(y), **tolerance)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_row_does_not_depend_on_the_other_rows(length: int) -> None:
    x = core.from_numpy(normal(37, length, "float32"))
    target = core.arange(37) % length
    for op in (
        lambda rows, _: core.softmax(rows, 1),
        lambda rows, _: core.log_softmax(rows, 1),
        lambda rows, labels: core.cross_entropy_loss(rows, labels, reduction=0)[:, None],
    ):
        together = op(x, target)
        alone = core.cat([op(x[i : i + 1], target[i : i + 1]) for i in range(37)])
        assert core.equal(together, alone)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [*DTYPES, "int32", "int64"])
def test_first_extremes(dtype: str, length: int) -> None:
    for count in COUNTS:
        a = np.random.default_rng(2).integers(-3, 4, (count, length)).astype(dtype)  # with ties
        if dtype.startswith("float"):
            a[::3, length // 2] = np.nan
            a[1::3, length // 3 :] = np.inf
            a[2::3] = np.where(a[2::3] == 0, np.float32(-0.0), a[2::3])
        x = core.from_numpy(a)
        for name in ("max", "min"):
            values, indices = getattr(core, name)(x, 1)
            np.testing.assert_array_equal(indices.numpy(), getattr(np, f"arg{name}")(a, 1))
            np.testing.assert_array_equal(values.numpy(), getattr(np, name)(a, 1))
            np.testing.assert_array_equal(getattr(core, f"arg{name}")(x, 1).numpy(), indices.numpy())
            found = np.take_along_axis(a, indices.numpy()[:, None], 1)[:, 0]
            if dtype.startswith("float"):
                np.testing.assert_array_equal(np.signbit(values.numpy()), np.signbit(found))


def test_extremes_of_infinities() -> None:
    for length in (1, 5, 40, 300):
        x = core.full((20, length), -float("inf"))
        assert (core.argmax(x, 1) == 0).all()
        assert (core.max(x, 1).values == -float("inf")).all()
        assert (core.argmin(-x, 1) == 0).all()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_with_a_vector(dtype: str, length: int) -> None:
    for count in COUNTS:
        a, b, c = (
            normal(count, length + 1, dtype)[:, :-1],
            normal(1, length, dtype)[0],
            normal(1, count, dtype)[0],
        )
        m, v, bias = core.from_numpy(a.base)[:, :-1], core.from_numpy(b), core.from_numpy(c)
        expected = a.astype("float64") @ b.astype("float64")
        tolerance = {"rtol": 1e-5, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose((m @ v).numpy(), expected, **tolerance)
        np.testing.assert_allclose((m.contiguous() @ v).numpy(), expected, **tolerance)
        np.testing.assert_allclose(
            core.linear(m, v[None], bias[:1]).numpy()[:, 0], expected + c[0], **tolerance
        )
        np.testing.assert_allclose(
            core.addmv(bias, m, v, beta=0.5, alpha=2.0).numpy(), 2 * expected + 0.5 * c, **tolerance
        )


@pytest.mark.parametrize("length", [1, 2, 3, 8, 100, 127, 128, 129, 2000])
def test_gather(length: int) -> None:
    for count in (1, 5, 700):
        a = normal(count, length, "float32")
        index = np.random.default_rng(3).integers(0, length, (count, max(1, length // 2)))
        x, i = core.from_numpy(a), core.from_numpy(index)
        np.testing.assert_array_equal(core.gather(x, 1, i).numpy(), np.take_along_axis(a, index, 1))
        for bad in (-1, length):
            wrong = i.clone()
            wrong[count // 2, -1] = bad
            with pytest.raises(RuntimeError, match="out of range"):
                core.gather(x, 1, wrong)
