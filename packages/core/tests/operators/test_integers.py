"""Integers at their limits, compared with NumPy: wrapping around, quotients of both signs, and unsigned dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight_core as core

INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")


def operands(name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return pairs of numbers: limits of the dtype, small and arbitrary numbers. No divisor is zero.

    There are more pairs than the loops process in one block, and only some blocks contain large numbers.
    """
    random = np.random.default_rng(3)
    info = np.iinfo(name)
    corners = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 1, 2, 3, 7]
    if info.min:
        corners += [-1, -2, -3, -7]
    if info.bits == 64:
        corners += [2**51, 2**51 - 1, 2**53 + 1, *([] if not info.min else [-(2**51), 1 - 2**51])]
    ends = np.array(corners, name)
    a, b = (part.ravel() for part in np.meshgrid(ends, ends[ends != 0]))
    near = random.integers(-100 if info.min else 0, 100, 1000), random.integers(1, 20, 1000)
    far = random.integers(info.min, info.max, 300, name), random.integers(max(info.min, -50), 50, 300) | 1
    if not info.min:
        far = far[0], np.abs(far[1])
    return tuple(
        np.concatenate([p.astype(name) for p in parts]) for parts in zip((a, b), near, far, strict=True)
    )


@pytest.mark.parametrize("name", INTEGERS)
def test_arithmetic(name: str) -> None:
    a, b = operands(name)
    x, y = core.from_numpy(a), core.from_numpy(b)
    with np.errstate(over="ignore", divide="ignore"):
        for ours, expected in (
            (x + y, a + b),
            (x - y, a - b),
            (x * y, a * b),
            (-x, -a),
            (x * x, a * a),
            (core.maximum(x, y), np.maximum(a, b)),
            (x.clamp(2, 5), np.clip(a, 2, 5)),
            (x.amax(), a.max()),
            (x.argmin(), a.argmin()),
            (x > y, a > b),
            (x.sum(), a.astype(np.int64).sum()),
        ):
            np.testing.assert_array_equal(ours.numpy(), expected)


@pytest.mark.parametrize("name", INTEGERS)
def test_quotients(name: str) -> None:
    a, b = operands(name)
    x, y = core.from_numpy(a), core.from_numpy(b)
    exact = [(int(p), int(q)) for p, q in zip(a, b, strict=True)]

    def wrapped(values: list[int]) -> np.ndarray[Any, Any]:
        return np.array([v % 2 ** np.iinfo(name).bits for v in values], np.uint64).astype(name)

    truncated = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in exact]
    np.testing.assert_array_equal((x // y).numpy(), wrapped([p // q for p, q in exact]))
    np.testing.assert_array_equal((x % y).numpy(), wrapped([p % q for p, q in exact]))
    np.testing.assert_array_equal(core.div(x, y, rounding_mode="trunc").numpy(), wrapped(truncated))
    np.testing.assert_array_equal(
        core.fmod(x, y).numpy(), wrapped([p - q * t for (p, q), t in zip(exact, truncated, strict=True)])
    )
    # One divisor for all elements, and elements that are not adjacent.
    np.testing.assert_array_equal((x // 7).numpy(), wrapped([p // 7 for p, _ in exact]))
    np.testing.assert_array_equal((x[::3] % y[::3]).numpy(), wrapped([p % q for p, q in exact[::3]]))


@pytest.mark.parametrize("name", INTEGERS)
def test_division_by_zero(name: str) -> None:
    x = core.ones(4, 3000, dtype=getattr(core, name))
    zeros = core.ones_like(x)
    zeros[1, 2300] = 0
    for divide in (core.floor_divide, core.remainder, core.fmod):
        for divisor in (zeros, zeros.t().contiguous().t()):
            with pytest.raises(RuntimeError) as caught:
                divide(x, divisor)
            assert f"{divide.__name__}(other): an integer cannot be divided by zero" in str(caught.value)
            assert str(caught.value).endswith("found 0 at index (1, 2300)")
        with pytest.raises(RuntimeError, match=r"\(other\): an integer cannot be divided by zero .*, got 0"):
            divide(x, 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x.div(zeros, rounding_mode="trunc")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x.floor_divide_(zeros)
    if x.device.type == "cpu":  # a device detects the error after the call
        assert core.equal(x, core.ones_like(x))


def test_float16_lines() -> None:
    """Convert every float16, and floats between them, in lengths that are multiples of a vector and in others."""
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    ours = core.from_numpy(halves).float().numpy()
    np.testing.assert_array_equal(ours, halves.astype(np.float32))
    floats = np.random.default_rng(0).normal(size=10007).astype(np.float32) * np.float32(1e4)
    floats[:40] = np.repeat([65519.9, 65520.0, 6e-8, 2.9e-8, 5.96e-8, np.inf, -np.inf, 2049.0], 5)
    for n in (10007, 33, 15, 1):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(
                core.from_numpy(floats[:n]).half().numpy(), floats[:n].astype(np.float16)
            )


def test_negation_of_bools() -> None:
    mask = np.random.default_rng(0).random((50, 37)) > 0.5
    for given in (mask, mask.T, mask[::2, 1:]):
        x = core.tensor(mask) if given is mask else core.from_numpy(given)
        assert (~x).tolist() == core.logical_not(x).tolist() == (~given).tolist()
        assert (~x).dtype is core.bool


def test_powers_of_bools() -> None:
    base, exponent = core.tensor([True, True, False, False]), core.tensor([True, False, True, False])
    wanted = [True, True, False, True]
    for got in (base**exponent, core.pow(base, exponent), base.clone().pow_(exponent)):
        assert got.dtype is core.bool
        assert got.tolist() == wanted
    assert [(base**e).tolist() for e in (True, False)] == [base.tolist(), [True] * 4]
    assert [(e**exponent).tolist() for e in (True, False)] == [[True] * 4, (~exponent).tolist()]
    assert (base**2).dtype is core.int64
    assert (base**2.0).dtype is core.float32


@pytest.mark.parametrize(
    "fill",
    [
        lambda t, number: core.full((1,), number, dtype=t.dtype),
        lambda t, number: t.fill_(number),
        lambda t, number: t.masked_fill(core.tensor([True]), number),
        lambda t, number: t.index_fill(0, core.tensor([0]), number),
        lambda t, number: t.scatter(0, core.tensor([0]), number),
        lambda t, number: core.constant_pad_nd(t, (1, 0), number),
    ],
)
def test_negative_integers_wrap_around_in_unsigned_dtypes_and_other_misfits_raise(fill: Any) -> None:
    unsigned, signed = (lambda: core.zeros(1, dtype=core.uint8)), (lambda: core.zeros(1, dtype=core.int8))
    assert [fill(unsigned(), number)[0].item() for number in (-1, -255, 255, 1.5)] == [255, 1, 255, 1]
    assert fill(signed(), -128)[0].item() == -128
    for t, numbers in ((unsigned, (256, -256, -1.5, float("inf"))), (signed, (128, -129, float("nan")))):
        for number in numbers:
            with pytest.raises(RuntimeError, match="does not fit"):
                fill(t(), number)


@pytest.mark.parametrize("name", ["uint8", "int8", "int64"])
def test_areas_between_falling_samples(name: str) -> None:
    """Negative differences, and sums that do not fit a small dtype."""
    dtype = getattr(core, name)
    y, x = core.tensor([100, 90, 120], dtype=dtype), core.tensor([9, 4, 0], dtype=dtype)
    expected = np.trapezoid([100, 90, 120], [9, 4, 0])
    assert core.trapezoid(y, x).item() == expected
    assert core.trapezoid(y.double(), x).item() == expected
    assert core.cumulative_trapezoid(y, x).tolist() == [-475.0, expected]


@pytest.mark.parametrize("name", ["uint8", "int8", "int64"])
def test_losses_beside_integers(name: str) -> None:
    dtype = getattr(core, name)
    large, small = core.tensor([[100, 50]], dtype=dtype), core.tensor([[0.5, 2.0]])
    found = core.cosine_embedding_loss(large, small, core.tensor([1]))
    assert found.item() == pytest.approx(
        core.cosine_embedding_loss(large.float(), small, core.tensor([1])).item()
    )
    beyond = core.tensor([10**10, 0])
    assert core.cosine_embedding_loss(beyond, beyond, core.tensor(1)).item() == 0
    logits, labels = core.tensor([0.5, -2.0]), core.tensor([2, 3], dtype=dtype)
    assert core.binary_cross_entropy_with_logits(logits, labels, reduction=1).item() == pytest.approx(
        core.binary_cross_entropy_with_logits(logits, labels.float(), reduction=1).item()
    )
    probabilities, outcomes = core.tensor([1, 1, 0, 0], dtype=dtype), core.tensor([0, 1, 0, 1], dtype=dtype)
    assert core.binary_cross_entropy(probabilities, outcomes).item() == 50
    assert core.kl_div(
        core.tensor([3, 1], dtype=dtype), core.tensor([2, 1], dtype=dtype), 2, log_target=True
    ).item() == (pytest.approx(-math.exp(2)))


@pytest.mark.parametrize("name", INTEGERS)
def test_matrix_products_wrap_around(name: str) -> None:
    random, info = np.random.default_rng(5), np.iinfo(name)

    def matrix(*shape: int) -> np.ndarray[Any, Any]:
        return random.integers(info.min, info.max, shape, name, endpoint=True)

    # Rows in blocks and alone, columns in wide and narrow panels, and more steps than one panel holds.
    sizes = [
        (1, 1, 1),
        (1, 40, 70),
        (3, 5, 9),
        (4, 1, 0),
        (4, 65, 1),
        (5, 130, 33),
        (6, 64, 64),
        (9, 200, 257),
    ]
    with np.errstate(over="ignore"):
        for m, k, n in sizes:
            a, b, c = matrix(m, k), matrix(k, n), matrix(m, n)
            x, y, z = map(core.from_numpy, (a, b, c))
            expected = a @ b
            columns = core.zeros(k, 2 * n, dtype=y.dtype)
            columns[:, ::2] = y
            for left in (x, x.t().contiguous().t()):
                for right in (y, y.t().contiguous().t(), columns[:, ::2]):
                    np.testing.assert_array_equal((left @ right).numpy(), expected)
            three, two = np.array(3, name), np.array(2, name)
            np.testing.assert_array_equal(
                core.addmm(z, x, y, beta=3, alpha=2).numpy(), three * c + two * expected
            )
            np.testing.assert_array_equal(core.addmm(z[:1], x, y).numpy(), c[:1] + expected)
            np.testing.assert_array_equal((y.t() @ x[0]).numpy(), b.T @ a[0])
            batch = core.stack([x, x, x]) @ core.stack([y, y, y])
            np.testing.assert_array_equal(batch.numpy(), np.stack([expected] * 3))
    assert (core.ones(4, 0, dtype=x.dtype) @ core.ones(0, 5, dtype=x.dtype)).eq(0).all()


@pytest.mark.parametrize("dtype", [core.int8, core.int16, core.int32, core.uint8], ids=str)
def test_least_common_multiples_wrap_around(dtype: core.dtype) -> None:
    """They are positive, and wrap around where they do not fit the dtype."""
    limits = core.iinfo(dtype)
    tried = (-1113, -107, -12, -1, 0, 1, 6, 89, 107, 10701, limits.max, limits.min + 1)
    values = [v for v in tried if limits.min <= v <= limits.max]
    a = core.tensor([x for x in values for _ in values], dtype=dtype)
    b = core.tensor([y for _ in values for y in values], dtype=dtype)
    wanted = [math.lcm(x, y) for x in values for y in values]
    step = limits.max - limits.min + 1
    assert core.lcm(a, b).tolist() == [(w - limits.min) % step + limits.min for w in wanted]


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("step", [1, 2])
def test_floats_that_do_not_fit_become_the_smallest_integer(source: str, target: str, step: int) -> None:
    """It is of int64 for int64, uint32 and uint8, otherwise of int32. Smaller dtypes receive its lowest bits."""
    values = [math.nan, math.inf, -math.inf, 3e9, -3e9, 1e19, -1e19, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63)]
    values += [4294967295.0, 3000000001.0, 2147483649.0, 1e12 + 7]
    values += [0.0, -0.5, 0.9, -1.9, 127.5, 255.0, 300.0, -300.0, 65280.0]
    floats = core.tensor(values * 5, dtype=getattr(core, source))[::step]
    bits = 64 if target in ("int64", "uint32", "uint8") else 32
    expected = []
    for value in floats.tolist():
        fits = math.isfinite(value) and -(2 ** (bits - 1)) <= int(value) < 2 ** (bits - 1)
        integer = int(value) if fits else -(2 ** (bits - 1))
        width = core.iinfo(getattr(core, target)).bits
        integer %= 2**width
        signed = not target.startswith("u")
        expected.append(integer - 2**width if signed and integer >= 2 ** (width - 1) else integer)
    assert floats.to(getattr(core, target)).tolist() == expected
