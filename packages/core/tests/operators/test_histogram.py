"""histogram and gradient, which are written in Python because their arguments have several types."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape)


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("where", [{}, {"range": (-1.0, 2.0)}])
def test_equal_parts(density: bool, weighted: bool, where: dict) -> None:
    x, w = numbers(5, 40), np.abs(numbers(5, 40)) if weighted else None
    weight = None if w is None else core.tensor(w)
    hist, edges = core.histogram(core.tensor(x), 7, weight=weight, density=density, **where)
    wanted, wanted_edges = np.histogram(x, 7, weights=w, density=density, **where)
    np.testing.assert_allclose(hist.numpy(), wanted)
    np.testing.assert_allclose(edges.numpy(), wanted_edges)


def test_given_parts() -> None:
    x, ends = numbers(90), np.array([-2.0, -0.5, 0.0, 0.25, 3.0])
    result = core.tensor(x).histogram(core.tensor(ends))
    np.testing.assert_allclose(result.hist.numpy(), np.histogram(x, ends)[0])
    np.testing.assert_allclose(result.bin_edges.numpy(), ends)


def test_histogram_refuses() -> None:
    x = core.tensor([1.0, 2.0])
    for error, arguments, options in (
        (RuntimeError, (x, 0), {}),
        (RuntimeError, (x, 3), {"range": (2, 1)}),
        (RuntimeError, (x, 3), {"weight": core.ones(3)}),
        (RuntimeError, (core.tensor([float("nan")]), 3), {}),
        (RuntimeError, (x, core.tensor([1.0])), {}),
        (TypeError, (x, core.tensor([1.0, 2.0])), {"range": (0, 1)}),
        (TypeError, (x, "auto"), {}),
        (NotImplementedError, (core.tensor([1, 2]), 3), {}),
    ):
        with pytest.raises(error, match="histogram"):
            core.histogram(*arguments, **options)


def test_meta_tensors_need_edges_that_depend_on_no_values() -> None:
    x = core.empty(9, 2, device="meta")
    for refused, name in (
        (lambda: core.histogram(x, 4), "histogram"),
        (lambda: core.histogramdd(x, [4, 3]), "histogramdd"),
        (lambda: core.histogramdd(x, [core.empty(5, device="meta"), 3]), "histogramdd"),
    ):
        with pytest.raises(
            NotImplementedError, match=rf"^{name}\(input\): without range, .*\nhint: pass range="
        ):
            refused()
    hist, edges = core.histogram(x, 4, range=(0, 1))
    assert (hist.shape, edges.shape, hist.device.type, edges.device.type) == ((4,), (5,), "meta", "meta")
    assert core.histogram(x, core.empty(6, device="meta")).hist.shape == (5,)
    hist, edges = core.histogramdd(x, [4, 3], range=[0, 1, 0, 1], weight=core.empty(9, device="meta"))
    assert (hist.shape, hist.device.type, [len(e) for e in edges]) == ((4, 3), "meta", [5, 4])
    assert core.histc(x, 7).shape == (7,)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histc_counts_numbers_near_the_largest(dtype: str) -> None:
    most = float(np.finfo(dtype).max)
    x = np.array([-most, -most / 2, 3.0, most / 3, most], dtype)
    for values in (x, x[2:], x / 4):
        expected = np.histogram(values.astype(np.longdouble), 5)[0]
        np.testing.assert_array_equal(core.histc(core.tensor(values), 5).numpy(), expected)


def test_points_outside_of_the_grid_are_not_counted() -> None:
    points = core.tensor([[0.5, 0.5], [float("nan"), 0.5], [2.0, 0.5], [0.5, -9.0], [1.0, 1.0]])
    weight = core.tensor([2.0, float("inf"), float("nan"), 5.0, 4.0])
    hist, _ = core.histogramdd(points, [2, 2], range=[0, 1, 0, 1], weight=weight)
    assert hist.tolist() == [[0.0, 0.0], [0.0, 6.0]]


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("uneven", [False, True])
def test_gradient(edge_order: int, uneven: bool) -> None:
    x = numbers(4, 6)
    coordinates = [np.cumsum(np.abs(numbers(n)) + 0.1) for n in x.shape] if uneven else [0.5, 2.0]
    spacing = [core.tensor(p) for p in coordinates] if uneven else coordinates
    got = core.gradient(core.tensor(x), spacing=spacing, edge_order=edge_order)
    for a, b in zip(got, np.gradient(x, *coordinates, edge_order=edge_order), strict=True):
        np.testing.assert_allclose(a.numpy(), b)
    (one,) = core.gradient(core.tensor(x), dim=-1)
    np.testing.assert_allclose(one.numpy(), np.gradient(x, axis=-1))


def test_gradient_refuses() -> None:
    x = core.ones(3, 4)
    for error, options in (
        (RuntimeError, {"edge_order": 3}),
        (RuntimeError, {"spacing": [1, 2, 3]}),
        (RuntimeError, {"spacing": (core.ones(3), core.ones(3))}),
        (RuntimeError, {"dim": (0, 0)}),
        (IndexError, {"dim": 2}),
        (TypeError, {"spacing": core.ones(3)}),
    ):
        with pytest.raises(error, match="gradient"):
            core.gradient(x, **options)
    with pytest.raises(RuntimeError, match="samples"):
        core.gradient(core.ones(1))


@pytest.mark.parametrize("spacing", [1 + 2j, 2, 0.5])
def test_gradient_of_complex_spacing(spacing: complex) -> None:
    for x in (np.array([1.0, 4.0, 9.0], "float32"), np.array([1.0, 4j, 9.0], "complex64")):
        got = core.gradient(core.tensor(x), spacing=spacing)[0]
        assert got.dtype == core.result_type(core.tensor(x), spacing)
        np.testing.assert_allclose(got.numpy(), np.gradient(x.astype(got.numpy().dtype), spacing), rtol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 3, 7, 4099, 70_001, 200_003])
@pytest.mark.parametrize("most", [0, 3, 1000, 5000, 300_000])
def test_counts_of_integers(n: int, most: int) -> None:
    x = np.random.default_rng(n).integers(0, most + 1, n)
    for given in (x, x.astype("int32"), x[::2]):
        got = core.bincount(core.tensor(given), minlength=5)
        np.testing.assert_array_equal(got.numpy(), np.bincount(given, minlength=5))
    for at in {0, n // 2, n - 1} if n else ():
        bad = x.copy()
        bad[at] = -7
        with pytest.raises(RuntimeError, match=f"found -7 at position {at}"):
            core.bincount(core.tensor(bad))
    np.testing.assert_array_equal(
        core.histc(core.tensor(x.astype("float64")), 10, 0, 100).numpy(), np.histogram(x, 10, (0, 100))[0]
    )
