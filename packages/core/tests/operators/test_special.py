"""Special functions: compared with SciPy, and with their definitions where SciPy is not accurate enough."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.special
from numpy.typing import NDArray

import rushlight_core as core
import rushlight_core.special as special

Values = NDArray[np.float64]
WIDE = np.concatenate([np.linspace(-9, 9, 181), np.linspace(-25, 40, 66)])
POSITIVE = np.concatenate([np.linspace(0.05, 30, 200), 10.0 ** np.arange(-10, 11)])
CHANCES = np.concatenate([np.linspace(0.01, 0.99, 99), 10.0 ** -np.arange(3.0, 300.0, 7)])

# Bounds are relative, and allow for the errors of SciPy.
CLOSE: dict[str, tuple[Callable[[Values], Values], Values, float]] = {
    "gammaln": (scipy.special.gammaln, POSITIVE, 4e-15),
    "digamma": (scipy.special.digamma, POSITIVE, 4e-15),
    "i0": (scipy.special.i0, WIDE, 4e-15),
    "i1": (scipy.special.i1, WIDE, 4e-15),
    "i0e": (scipy.special.i0e, WIDE, 4e-15),
    "i1e": (scipy.special.i1e, WIDE, 4e-15),
    "erfcx": (scipy.special.erfcx, WIDE, 2e-13),
    "ndtr": (scipy.special.ndtr, WIDE[WIDE < 9], 4e-13),
    "log_ndtr": (scipy.special.log_ndtr, WIDE[WIDE < 9], 2e-14),
    "ndtri": (scipy.special.ndtri, CHANCES[CHANCES != 0.5], 4e-15),
}


@pytest.mark.parametrize("name", CLOSE)
def test_as_near_as_documented(name: str) -> None:
    reference, x, bound = CLOSE[name]
    got = getattr(special, name)(core.from_numpy(x)).numpy()
    np.testing.assert_allclose(got, reference(x), rtol=bound, atol=1e-15 if name == "gammaln" else 0)


def test_the_zeros_of_lgamma() -> None:
    """float32 is accurate relative to the result near 1 and 2. The reference is computed in float64."""
    steps = np.concatenate([np.geomspace(1e-7, 0.3, 400), -np.geomspace(1e-7, 0.3, 400), [0.0]])
    for zero in (1.0, 2.0):
        x = core.from_numpy((zero + steps).astype(np.float32))
        got, wanted = core.lgamma(x).numpy(), core.lgamma(x.double()).numpy()
        assert (got[steps == 0] == 0).all()
        np.testing.assert_allclose(got, wanted, rtol=1e-7)
    x = core.tensor([1.0, 2.0, 1 + 2.0**-30, 2 - 2.0**-30], dtype=core.float64)
    near = [0, 0, -0.57721566413555075 * 2.0**-30, -0.42278433479814631 * 2.0**-30]
    np.testing.assert_allclose(core.lgamma(x).numpy(), near, rtol=1e-14)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 250.0, 4000.0, 1e8])
def test_incomplete_gamma_functions(scale: float) -> None:
    a = np.linspace(0.2, 1.8, 9)[:, None] * scale
    x = a * np.linspace(0.5, 1.5, 21)
    below = special.gammainc(core.from_numpy(a), core.from_numpy(x)).numpy()
    above = special.gammaincc(core.from_numpy(a), core.from_numpy(x)).numpy()
    np.testing.assert_allclose(below + above, 1, rtol=1e-14)
    bound = 5e-12 if scale < 1e4 else 1e-8  # the error of SciPy
    np.testing.assert_allclose(below, scipy.special.gammainc(a, x), rtol=bound, atol=1e-200)
    np.testing.assert_allclose(above, scipy.special.gammaincc(a, x), rtol=bound, atol=1e-200)


def test_ends_of_the_incomplete_gamma_functions() -> None:
    a = core.tensor([0.0, 0.0, 1.0, -1.0, math.inf, 2.0])
    x = core.tensor([0.0, 1.0, 0.0, 1.0, 1.0, math.inf])
    np.testing.assert_array_equal(special.gammainc(a, x).numpy(), [np.nan, 1, 0, np.nan, 0, 1])
    np.testing.assert_array_equal(special.gammaincc(a, x).numpy(), [np.nan, 0, 1, np.nan, 1, 0])


def test_zeta_below_zero() -> None:
    """zeta satisfies its recurrence for negative arguments, even where summing the series would take too long."""
    q = core.tensor([-0.3, -7.6, -19.9, -20.1, -333.25], dtype=core.float64)
    for s in (2, 3, 8):
        np.testing.assert_allclose(
            special.zeta(s, q).numpy(), (special.zeta(s, q + 1) + q**-s).numpy(), rtol=1e-12
        )
    assert special.zeta(2, core.tensor([-1e9 - 0.5], dtype=core.float64)).item() == pytest.approx(math.pi**2)
    assert special.zeta(2.5, core.tensor([-1.5])).isnan().all()


def test_polygamma_of_both_sides() -> None:
    x = core.tensor([0.3, 2.5, 40.0, -0.75, -3.5], dtype=core.float64)
    for n in (1, 2, 5):
        step = (-1) ** n * math.factorial(n) * x ** (-n - 1)
        np.testing.assert_allclose(
            core.polygamma(n, x + 1).numpy(), (core.polygamma(n, x) + step).numpy(), rtol=1e-11, atol=1e-12
        )


def test_names() -> None:
    assert special.gammaln is core.lgamma
    assert special.psi is special.digamma is core.digamma
    assert special.expit is core.sigmoid
    assert set(special.__all__) <= set(vars(special))


@pytest.mark.parametrize(
    "degree", [core.ones(1), core.ones(1, dtype=core.float64), core.ones(1, dtype=core.int64)]
)
def test_shifted_arguments_are_not_rounded(degree: core.Tensor) -> None:
    x = core.tensor([0.106, -0.983], dtype=core.bfloat16)
    got = special.shifted_chebyshev_polynomial_t(x, degree)
    assert got.dtype is core.result_type(x, degree)
    assert got.tolist() == (2 * x.to(got.dtype) - 1).tolist()


def left_of_zero() -> Values:
    """Return float32 numbers below 10: random ones, and those around negative integers and zeros of lgamma."""
    random = np.random.default_rng(8)
    parts = [random.uniform(-30, 10, 5000), -(10.0 ** random.uniform(-30, 6, 500))]
    for n in range(0, -14, -1):
        near = np.full(41, n, np.float32)
        for k in range(1, 21):
            near[20 + k] = np.nextafter(near[20 + k - 1], np.float32(np.inf))
            near[20 - k] = np.nextafter(near[20 - k + 1], np.float32(-np.inf))
        parts.append(near)
    for zero in (-2.4570247, -2.7476828, -3.1435809, -3.9552942, -4.0393615, -4.9915447, -5.0082183):
        parts.append(zero + np.linspace(-3e-3, 3e-3, 801))
    return np.concatenate(parts).astype(np.float32)


@pytest.mark.parametrize("name", ["lgamma", "digamma", "trigamma"])
def test_gamma_functions_of_negative_float32(name: str) -> None:
    """They are as accurate as float64, rounded once, also if only some elements of a block need the slower functions."""
    function = {"trigamma": lambda t: core.polygamma(1, t)}.get(name) or getattr(core, name)
    x = left_of_zero()
    tensor = core.from_numpy(x)
    wide = function(tensor.double()).numpy()
    with np.errstate(over="ignore"):
        wanted = wide.astype(np.float32)
    got = function(tensor).numpy()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(got[~finite], wanted[~finite])
    # Digamma has a bound relative to 1.
    scale = np.maximum(np.abs(wide), 1) if name == "digamma" else np.abs(wide)
    assert (np.abs(got - wide)[finite] <= 6e-8 * scale[finite] + 1e-44).all()
    for layout in (tensor.clone(), core.stack([tensor, tensor], 1)[:, 0]):
        np.testing.assert_array_equal(function(layout).numpy(), got)
    if name != "trigamma":
        np.testing.assert_array_equal(getattr(tensor.clone(), f"{name}_")().numpy(), got)
    ends = core.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, -3.0, 1e30, 3e38, -1e30])
    np.testing.assert_array_equal(function(ends).numpy(), function(ends.double()).float().numpy())


@pytest.mark.parametrize("name", ["lgamma", "digamma", "trigamma"])
def test_gamma_functions_do_not_depend_on_neighbours(name: str) -> None:
    """Blocks of positive numbers are computed by shorter functions, which have the same results bit for bit."""
    function = {"trigamma": lambda t: core.polygamma(1, t)}.get(name) or getattr(core, name)
    random = np.random.default_rng(9)
    parts = [random.uniform(0, 10, 700), 10.0 ** random.uniform(-40, 38, 700), [1.0, 2.0, 8.0, math.inf]]
    x = core.from_numpy(np.concatenate(parts).astype(np.float32))
    wanted = function(x).numpy()
    for other in (-0.5, -7.0, 0.0, math.nan):
        mixed = core.stack([x, core.full_like(x, other)], 1)
        np.testing.assert_array_equal(function(mixed)[:, 0].numpy(), wanted)


def test_trigamma_of_both_sides() -> None:
    x = np.concatenate([POSITIVE, [0.0, math.inf, 1e-300]])
    np.testing.assert_allclose(
        core.polygamma(1, core.from_numpy(x)).numpy(), scipy.special.polygamma(1, x), rtol=4e-15
    )
    x = np.random.default_rng(9).uniform(-40, 0, 500)
    left, right = core.from_numpy(x), core.from_numpy(1 - x)
    reflected = math.pi**2 / np.sin(math.pi * (x - np.rint(x))) ** 2 - core.polygamma(1, right).numpy()
    np.testing.assert_allclose(core.polygamma(1, left).numpy(), reflected, rtol=1e-14)
    assert core.polygamma(1, core.tensor([-math.inf, math.nan], dtype=core.float64)).isnan().all()


def test_erfinv_of_float64() -> None:
    apart = 10.0 ** -np.linspace(0.1, 15.6, 400)
    x = np.concatenate(
        [np.linspace(-0.99, 0.99, 999), 1 - apart, apart - 1, apart, [1e-300, 5e-324, 0.85, 0.8500001]]
    )
    np.testing.assert_allclose(
        core.erfinv(core.from_numpy(x)).numpy(), scipy.special.erfinv(x), rtol=1.5e-15, atol=0
    )
    last = np.nextafter(1.0, 0.0)
    ends = core.erfinv(
        core.tensor([-1.0, -last, -0.0, 0.0, last, 1.0, 1.5, -np.inf, np.nan], dtype=core.float64)
    ).numpy()
    assert np.array_equal(ends[[0, 5]], [-np.inf, np.inf])
    assert ends[4] == -ends[1]
    np.testing.assert_allclose(ends[4], 5.8635847487551676, rtol=1e-15)
    assert np.array_equal(np.signbit(ends[2:4]), [True, False])
    assert np.isnan(ends[6:]).all()
