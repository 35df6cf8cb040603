"""Remainders, quotients and products with powers of two, whose results are exact or rounded once."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rushlight_core as core

Values = NDArray[Any]


def random() -> np.random.Generator:
    """Return a generator of random numbers with a fixed seed."""
    return np.random.default_rng(11)


def pairs(dtype: Any) -> tuple[Values, Values]:
    """Return dividends and divisors: products of small integers, their neighbours, random numbers and special numbers."""
    least = np.finfo(dtype).smallest_subnormal
    ends = np.asarray(
        [0, least, 7 * least, np.finfo(dtype).tiny, 1, 3, 1e30, np.finfo(dtype).max, np.inf, np.nan], dtype
    )
    ends = np.concatenate([ends, -ends])
    a, b = (np.asarray(part) for part in zip(*itertools.product(ends, ends), strict=True))
    divisors = random().uniform(-3, 3, 4000).astype(dtype)
    products = (divisors * random().integers(-200, 200, 4000)).astype(dtype)
    far = (random().uniform(-1, 1, 2000) * 10.0 ** random().integers(0, 30, 2000)).astype(dtype)
    dividends = [
        a,
        products,
        np.nextafter(products, dtype(np.inf)),
        np.nextafter(products, dtype(-np.inf)),
        far,
    ]
    return np.concatenate(dividends).astype(dtype), np.concatenate(
        [b, divisors, divisors, divisors, divisors[:2000]]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact(dtype: Any) -> None:
    """The remainders equal those of the C library, and the quotients the exact quotients, rounded down."""
    a, b = pairs(dtype)
    x, y = core.from_numpy(a), core.from_numpy(b)
    with np.errstate(all="ignore"):
        wanted = np.fmod(a, b)
        got = core.fmod(x, y).numpy()
        np.testing.assert_array_equal(got, wanted)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(wanted[known]))
        opposite = (wanted != 0) & (np.signbit(wanted) != np.signbit(b))
        np.testing.assert_array_equal(core.remainder(x, y).numpy(), np.where(opposite, wanted + b, wanted))
    quotients = core.floor_divide(x, y).numpy()
    for p, q, quotient in zip(a.tolist(), b.tolist(), quotients.tolist(), strict=True):
        if np.isfinite(p) and np.isfinite(q) and q != 0 and abs(p) < abs(q) * (1 << 22):
            assert quotient == Fraction(p) // Fraction(q)
    for divisor in (0.75, -3.0):
        np.testing.assert_array_equal(
            core.fmod(x, divisor).numpy(), core.fmod(x, core.full_like(x, divisor)).numpy()
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ldexp_is_rounded_once(dtype: Any) -> None:
    info = np.finfo(dtype)
    a = np.asarray(
        [1, -1, 1.5, 1 + info.eps, 2 - info.eps, info.tiny, info.max, info.smallest_subnormal, 0, -0.0], dtype
    )
    a = np.concatenate(
        [a, random().uniform(1, 2, 30).astype(dtype), np.asarray([np.inf, -np.inf, np.nan], dtype)]
    )
    power = np.concatenate([np.arange(-2300, 2300, 7), np.arange(-1100, -1000), np.arange(-160, -110)])
    with np.errstate(all="ignore"):
        wanted = np.ldexp(a[:, None], power)
    x, p = core.from_numpy(a), core.from_numpy(power)
    for one, other in ((x[:, None], p), (x[:, None].contiguous(), p.to(x.dtype)), (x, None)):
        if other is None:
            got = core.stack([core.ldexp(one, k) for k in p], 1)  # one power for all elements
        else:
            got = core.ldexp(one, other)
        np.testing.assert_array_equal(got.numpy(), wanted)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got.numpy()[known]), np.signbit(wanted[known]))
    parts = core.ldexp(core.complex(x, x.flip(0))[:, None], p)
    np.testing.assert_array_equal(parts.real.numpy(), wanted)
    np.testing.assert_array_equal(parts.imag.numpy(), wanted[::-1])


@pytest.mark.parametrize("dtype", [core.float32, core.float64])
def test_ldexp_of_other_powers(dtype: core.dtype) -> None:
    x = core.tensor([1.0, 0.0, -3.0, 1e30], dtype=dtype)
    for power in (0.5, -1.25, np.inf, -np.inf, np.nan):
        with np.errstate(all="ignore"):
            wanted = x.numpy() * np.exp2(power)
        for p in (core.tensor(power, dtype=dtype), core.full((4,), power, dtype=dtype)):
            np.testing.assert_allclose(
                core.ldexp(x, p).numpy(), wanted, rtol=3e-7 if dtype is core.float32 else 1e-15
            )
    z = core.ldexp(core.complex(x, x), core.tensor([0.5 + 1j]))
    np.testing.assert_allclose(z.numpy(), x.numpy() * (1 + 1j) * 2 ** (0.5 + 1j), rtol=1e-5)
