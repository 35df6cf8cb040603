"""Errors of elementary functions in units in the last place."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rushlight_core as core
import rushlight_core.special as special

Values = NDArray[Any]
ENDS = [
    0.0,
    5e-324,
    1e-310,
    2.3e-308,
    1e-160,
    1e-20,
    0.5,
    1.0,
    1.5,
    2.0,
    3e150,
    1e300,
    1.7e308,
    np.inf,
    np.nan,
]
ENDS += [-x for x in ENDS]


def random() -> np.random.Generator:
    """Return a generator of random numbers with a fixed seed."""
    return np.random.default_rng(11)


def powers(low: float, high: float, count: int = 4000) -> Values:
    """Return numbers of both signs, whose binary logarithms are evenly distributed between two bounds."""
    with np.errstate(over="ignore"):
        return 2.0 ** random().uniform(low, high, count) * random().choice([-1, 1], count)


def near_one() -> Values:
    """Return numbers between -1 and 1, many of them near the ends."""
    return np.concatenate([random().uniform(-1, 1, 8000), 1 - 2.0 ** -random().uniform(0, 52, 2000)])


def units(dtype: Any, wanted: Values) -> Values:
    """Return the distances between numbers of `dtype` near `wanted`."""
    with np.errstate(over="ignore"):
        return np.spacing(np.abs(wanted.astype(dtype))).astype(np.longdouble)


def check(got: Values, wanted: Values, bound: float) -> None:
    """Raise AssertionError unless results differ from numbers of longdouble by at most `bound` units in the last place."""
    dtype = got.dtype
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rounded = wanted.astype(dtype)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
        ordinary = np.isfinite(rounded) & np.isfinite(got)
        np.testing.assert_array_equal(got[~ordinary], rounded[~ordinary])
        known = ~np.isnan(rounded)
        np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(rounded[known]))
        error = np.abs(got[ordinary].astype(np.longdouble) - wanted[ordinary])
        assert (error / units(dtype, wanted[ordinary])).max() <= bound


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[], Values], float]] = {
    "asin": (np.arcsin, near_one, 0.8),
    "acos": (np.arccos, near_one, 0.8),
    "atanh": (np.arctanh, near_one, 0.8),
    "atan": (np.arctan, lambda: np.concatenate([powers(-1074, 1023), random().uniform(-4, 4, 8000)]), 0.9),
    "sinh": (np.sinh, lambda: np.concatenate([powers(-1074, 9.4), random().uniform(-30, 30, 8000)]), 0.9),
    "cosh": (np.cosh, lambda: np.concatenate([powers(-1074, 9.4), random().uniform(-30, 30, 8000)]), 0.9),
    "log2": (np.log2, lambda: np.abs(np.concatenate([powers(-1074, 1023), powers(-1, 1)])), 1.1),
    "log10": (np.log10, lambda: np.abs(np.concatenate([powers(-1074, 1023), powers(-1, 1)])), 1.1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_one_number(name: str) -> None:
    reference, values, bound = FUNCTIONS[name]
    x = np.concatenate([values(), ENDS])
    with np.errstate(all="ignore"):
        wanted = reference(x.astype(np.longdouble))
    if name in ("log2", "log10", "atanh"):  # NumPy's NaN may have either sign
        wanted[np.isnan(wanted)] = np.nan
    tensor = core.from_numpy(x)
    got = getattr(core, name)(tensor).numpy()
    check(got, wanted, bound)
    strided = core.stack([tensor, tensor], 1)[:, 1]
    np.testing.assert_array_equal(getattr(core, name)(strided).numpy(), got)


@pytest.mark.parametrize(("name", "bound"), [("log2", 1.2), ("log10", 1.1)])
def test_logarithms_of_float32(name: str, bound: float) -> None:
    x = np.abs(np.concatenate([powers(-149, 127), powers(-1, 1)])).astype(np.float32)
    wanted = getattr(np, name)(x.astype(np.longdouble))
    check(getattr(core, name)(core.from_numpy(x)).numpy(), wanted, bound)


@pytest.mark.parametrize(
    ("name", "reference", "bound"), [("atan2", np.arctan2, 1.3), ("hypot", np.hypot, 0.6)]
)
def test_functions_of_two_numbers(name: str, reference: Callable[..., Any], bound: float) -> None:
    a, b = (np.asarray(part) for part in zip(*itertools.product(ENDS, ENDS), strict=True))
    a = np.concatenate([a, powers(-1074, 1023), powers(-60, 60), random().uniform(-2, 2, 8000)])
    b = np.concatenate(
        [b, powers(-1074, 1023)[::-1], powers(-60, 60)[::-1], random().uniform(-2, 2, 8000)[::-1]]
    )
    with np.errstate(all="ignore"):
        wanted = reference(a.astype(np.longdouble), b.astype(np.longdouble))
        check(getattr(core, name)(core.from_numpy(a), core.from_numpy(b)).numpy(), wanted, bound)
    if name == "hypot":
        parts = core.complex(core.from_numpy(a), core.from_numpy(b)).abs().numpy()
        np.testing.assert_array_equal(parts, core.hypot(core.from_numpy(a), core.from_numpy(b)).numpy())


# Computed with 60 digits.
ERFC = {
    0.0: "1.0",
    1e-300: "1.0",
    1e-17: "0.9999999999999999887162083",
    0.03: "0.9661587776582645679494089",
    0.2: "0.777297410789521533823547",
    0.499: "0.480379344010531540128423",
    0.5: "0.4795001221869534623172533",
    0.5625: "0.4263255433844080460094465",
    0.7: "0.3221988061625815577231418",
    0.875: "0.2159249389401403416854643",
    1.0: "0.1572992070502851306587794",
    1.5: "0.03389485352468927293302374",
    2.25: "0.001462716586681151697910796",
    3.0: "0.00002209049699858544137277613",
    4.5: "1.96616044154288747627916e-10",
    6.42: "1.093244877129321002807659e-19",
    8.0: "1.122429717298292707996789e-29",
    11.0: "1.44086613794369468033981e-54",
    15.5: "1.663201640048872334149103e-106",
    20.0: "5.395865611607900928934999e-176",
    25.75: "2.37649030570294064162979e-290",
    26.5: "2.210907664263734275929239e-307",
    27.2: "1.018904914270315539514234e-323",
    -0.3: "1.328626759459127416189618",
    -0.5: "1.520499877813046537682747",
    -0.8: "1.742100964707660512589787",
    -2.0: "1.995322265018952734162069",
    -7.0: "1.999999999999999999999958",
}
NDTRI = {
    5e-324: "-38.46740561714434625078436",
    1e-320: "-38.26912534303265101818101",
    1e-310: "-37.66306033194952373189098",
    1e-300: "-37.04709629936119923654704",
    1e-100: "-21.27345356096532429417952",
    1e-40: "-13.31092137142517089531198",
    1e-12: "-7.034483825301131932614176",
    1.3887943864964e-11: "-6.657904643501103806051656",
    1e-05: "-4.264890793922824610233749",
    0.01: "-2.326347874040841093075096",
    0.05: "-1.644853626951472687952128",
    0.075: "-1.439531470938455934949801",
    0.0751: "-1.438825392752539982435914",
    0.1: "-1.281551565544600435334517",
    0.25: "-0.674489750196081743202227",
    0.4: "-0.2533471031357997413246887",
    0.4999: "-0.0002506628300880074923888501",
    0.6: "0.2533471031357997413246887",
    0.9: "1.281551565544600593487448",
    0.95: "1.644853626951472284276316",
    0.999: "3.090232306167813277758202",
    0.999999999: "5.997807019601637426423078",
}


@pytest.mark.parametrize(
    ("function", "table", "bound"), [(core.erfc, ERFC, 1.5), (special.ndtri, NDTRI, 4)], ids=["erfc", "ndtri"]
)
def test_tabulated_values(
    function: Callable[[core.Tensor], core.Tensor], table: dict[float, str], bound: float
) -> None:
    x = np.asarray(list(table))
    wanted = np.asarray([np.longdouble(text) for text in table.values()])
    check(function(core.from_numpy(x)).numpy(), wanted, bound)
    if function is core.erfc:
        single = x.astype(np.float32)
        exact = single == x
        got = function(core.from_numpy(single[exact])).numpy()
        np.testing.assert_allclose(got, wanted[exact], rtol=1e-7, atol=2e-45)


def test_ends_of_erfc_and_ndtri() -> None:
    for dtype in (core.float32, core.float64):
        x = core.tensor([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e30], dtype=dtype)
        np.testing.assert_array_equal(core.erfc(x).numpy(), [0, 2, np.nan, 1, 1, 0, 2])
        x = core.tensor([0.0, 1.0, 0.5, -0.1, 1.1, np.nan, np.inf, -np.inf], dtype=dtype)
        nan = np.nan
        np.testing.assert_array_equal(special.ndtri(x).numpy(), [-np.inf, np.inf, 0, nan, nan, nan, nan, nan])
