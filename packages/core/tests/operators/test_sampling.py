"""Samplers: distributions compared with SciPy, equal bits for any number of threads, derivatives of samples, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight_core as core

scipy = pytest.importorskip("scipy")
import numpy as np  # noqa: E402
from scipy import special, stats  # noqa: E402

N = 20_000


def full(value: float, dtype: Any = core.float64) -> Any:
    return core.full((N,), value, dtype=dtype)


@pytest.mark.parametrize("shape", [0.3, 0.9, 1.0, 2.5, 40.0, 1e6])
def test_gamma_variables(shape: float) -> None:
    core.manual_seed(11)
    drawn = core._standard_gamma(full(shape)).numpy()
    assert stats.kstest(drawn, stats.gamma(shape).cdf).pvalue > 1e-3
    logs = core._standard_log_gamma(full(shape)).numpy()
    assert stats.kstest(logs, stats.loggamma(shape).cdf).pvalue > 1e-3
    assert not np.array_equal(np.exp(logs), drawn)


@pytest.mark.parametrize("shape", [1e-300, 1e-5, 0.01])
def test_gamma_variables_of_small_shapes(shape: float) -> None:
    core.manual_seed(5)
    logs = core._standard_log_gamma(full(shape)).numpy()
    # -log z · shape is nearly an exponential variable; the difference is the part of a variable of shape 1.
    assert np.isfinite(logs).all()
    assert stats.kstest(-logs * shape, "expon").pvalue > 1e-3
    drawn = core._standard_gamma(full(shape))
    assert drawn.min().item() >= np.finfo(np.float64).tiny
    narrow = core._standard_gamma(full(max(shape, 1e-30), core.float32))
    assert narrow.min().item() >= np.finfo(np.float32).tiny


def test_gamma_variables_of_many_shapes_at_once() -> None:
    core.manual_seed(3)
    shapes = core.tensor([0.2, 1.0, 3.0, 500.0], dtype=core.float64).repeat(5000, 1)
    drawn = core._standard_gamma(shapes.t()).t()  # strided
    u = special.gammainc(shapes.numpy(), drawn.numpy())
    assert all(stats.kstest(column, "uniform").pvalue > 1e-3 for column in u.T)
    correlation = np.corrcoef(u.T) - np.eye(4)
    assert abs(correlation).max() < 0.06


@pytest.mark.parametrize(
    ("count", "prob"),
    [(1, 0.3), (12, 0.5), (25, 0.4), (30, 0.97), (1000, 0.2), (1000, 0.002), (10**6, 0.7)],
)
def test_binomial_variables(count: int, prob: float) -> None:
    core.manual_seed(4)
    drawn = core.binomial(full(count), full(prob)).numpy()
    known = stats.binom(count, prob)
    values, counts = np.unique(drawn, return_counts=True)
    assert values.min() >= 0
    assert values.max() <= count
    # The distance between the distribution functions; for integers it is smaller than for continuous variables.
    distance = abs(np.cumsum(counts) / N - known.cdf(values)).max()
    assert distance * np.sqrt(N) < 1.9
    assert abs(drawn.mean() - known.mean()) < 4 * known.std() / np.sqrt(N)
    assert abs(drawn.var() / known.var() - 1) < 5 * np.sqrt((2 + abs(known.stats("k"))) / N)


def test_binomial_variables_at_the_ends_and_of_huge_counts() -> None:
    core.manual_seed(4)
    count = core.tensor([0.0, 7.0, 7.0, 2.0**53, 2.0**53], dtype=core.float64)
    prob = core.tensor([0.5, 0.0, 1.0, 0.0, 1.0], dtype=core.float64)
    assert core.binomial(count, prob).tolist() == [0.0, 0.0, 7.0, 0.0, 2.0**53]
    drawn = core.binomial(full(2.0**53), full(0.5)).numpy()
    assert stats.kstest((drawn - 2.0**52) / 2.0**25.5, "norm").pvalue > 1e-3
    few = core.binomial(full(2.0**53), full(3 * 2.0**-53)).numpy()
    assert abs(few.mean() - 3) < 0.06


def test_binomial_broadcasts_and_keeps_the_dtype() -> None:
    drawn = core.binomial(
        core.full((3, 1), 9.0, dtype=core.float16), core.full((4,), 1.0, dtype=core.float16)
    )
    assert (drawn.dtype, drawn.shape) == (core.float16, (3, 4))
    assert (drawn == 9).all()
    out = core.empty(2)
    assert core.binomial(core.tensor([3.0, 3.0]), core.tensor(0.0), out=out) is out
    assert out.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("size", [0.001, 0.2, 5.0])
def test_dirichlet_variables(size: float) -> None:
    core.manual_seed(8)
    concentration = core.tensor([size, 2 * size, 3 * size], dtype=core.float64)
    drawn = core._sample_dirichlet(concentration.expand(N, 3)).numpy()
    np.testing.assert_allclose(drawn.sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(drawn.mean(0), [1 / 6, 1 / 3, 1 / 2], atol=0.015)
    np.testing.assert_allclose(
        drawn.var(0), stats.dirichlet(concentration.numpy()).var(), rtol=0.05, atol=1e-4
    )


DRAWS: dict[str, Callable[[], Any]] = {
    "_standard_gamma": lambda: core._standard_gamma(core.linspace(0.05, 30, 30_001)),
    "_standard_log_gamma": lambda: core._standard_log_gamma(core.linspace(0.05, 30, 30_001)),
    "_sample_dirichlet": lambda: core._sample_dirichlet(core.ones(10_000, 3)),
    "binomial": lambda: core.binomial(core.arange(30_001.0), core.tensor(0.3)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_values_depend_on_the_seed_alone(name: str) -> None:
    threads = core.get_num_threads()
    core.manual_seed(7)
    first, second = DRAWS[name](), DRAWS[name]()
    assert not core.equal(first, second)
    try:
        for count in (1, 2, 3, 8):
            core.set_num_threads(count)
            core.manual_seed(7)
            assert core.equal(DRAWS[name](), first)
            assert core.equal(DRAWS[name](), second)
    finally:
        core.set_num_threads(threads)


def test_a_value_does_not_depend_on_its_neighbours() -> None:
    shapes = core.linspace(0.1, 3, 700)
    core.manual_seed(2)
    drawn = core._standard_gamma(shapes)
    shapes[::2] = 50.0
    core.manual_seed(2)
    assert core.equal(core._standard_gamma(shapes)[1::2], drawn[1::2])


def test_slopes_of_gamma_variables_are_those_of_the_quantile() -> None:
    shapes = np.array([0.02, 0.1, 0.7, 1.0, 3.0, 20.0, 99.0, 101.0, 3000.0])[:, None]
    u = np.array([0.001, 0.1, 0.3, 0.5, 0.8, 0.95, 0.9999])
    z = special.gammaincinv(shapes, u)
    step = 1e-4 * shapes
    ahead, behind = (special.gammaincinv(shapes + k * step, u) for k in (1, -1))
    more, less = (special.gammaincinv(shapes + k * step, u) for k in (2, -2))
    expected = (8 * (ahead - behind) - (more - less)) / (12 * step)
    found = core._standard_gamma_grad(core.tensor(np.broadcast_to(shapes, z.shape).copy()), core.tensor(z))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-7, atol=1e-250)
    single = core._standard_gamma_grad(
        core.tensor(np.broadcast_to(shapes, z.shape).copy()).float(),
        core.tensor(np.maximum(z, 1e-30)).float(),
    )
    assert core.isfinite(single).all()


def test_slopes_at_the_ends() -> None:
    # For small shapes z is u^(1/a), and the derivative of log z is -log(z) / a.
    a, y = core.tensor([1e-8], dtype=core.float64), core.tensor([-1e9], dtype=core.float64)
    assert core._C._call_boxed("_standard_log_gamma_grad", a, y)[0].item() == pytest.approx(1e17, rel=1e-7)
    nan = core._standard_gamma_grad(
        core.tensor([float("nan"), 1.0, -1.0]), core.tensor([1.0, float("nan"), 1.0])
    )
    assert nan.isnan().all()


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_shapes_must_be_positive(bad: float) -> None:
    for draw in (core._standard_gamma, core._standard_log_gamma):
        with pytest.raises(RuntimeError, match=r"gamma\(input\): the shape parameters must be positive"):
            draw(core.tensor([1.0, bad]))


def test_binomial_refuses_what_is_no_count_or_probability() -> None:
    half = core.tensor([0.5])
    for bad in (-1.0, 2.5, float("nan"), float("inf"), 2.0**54):
        with pytest.raises(RuntimeError, match=r"binomial\(count\)"):
            core.binomial(core.tensor([bad]), half)
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(RuntimeError, match=r"binomial\(prob\)"):
            core.binomial(core.tensor([3.0]), core.tensor([bad]))
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        core.binomial(core.tensor([3.0], dtype=core.float64), half)
