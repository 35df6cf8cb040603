"""Complex tensors: conversions of numbers, parts as views, printing, errors. The tests of operators check values."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import rushlight_core as core
from rushlight_testing import assert_close


def test_numbers_come_in_and_out() -> None:
    t = core.tensor([[1 + 2j, 3.0], [4, True]])
    assert t.dtype == core.complex64
    assert t.tolist() == [[1 + 2j, 3 + 0j], [4 + 0j, 1 + 0j]]
    assert complex(t[0, 0]) == t[0, 0].item() == 1 + 2j
    assert core.tensor(np.complex128(1 - 1j)).dtype == core.complex128
    assert core.full((2,), 1j).tolist() == [1j, 1j]
    assert core.scalar_tensor(2j, dtype=core.complex128).item() == 2j


def test_arrays_share_memory() -> None:
    array = np.array([1 + 2j, 3 - 4j], dtype=np.complex64)
    t = core.from_numpy(array)
    t.mul_(1j)
    assert array.tolist() == [-2 + 1j, 4 + 3j]
    assert np.asarray(t) is not array
    assert np.shares_memory(t.numpy(), array)


def test_promotion_is_that_of_categories() -> None:
    assert (core.ones(2) + 1j).dtype == core.complex64
    assert (core.ones(2, dtype=core.float64) + 1j).dtype == core.complex128
    assert (core.ones(2, dtype=core.int64) * 1j).dtype == core.complex64
    assert (core.ones(2, dtype=core.complex64) * core.ones(2, dtype=core.float64)).dtype == core.complex128
    assert (core.ones(2, dtype=core.complex64) * core.ones((), dtype=core.float64)).dtype == core.complex64


def test_parts_are_views() -> None:
    z = core.tensor([1 + 2j, 3 - 4j])
    z.imag.zero_()
    assert z.tolist() == [1, 3]
    z.real = core.tensor([5.0, 6.0])
    z.imag = 1
    assert z.tolist() == [5 + 1j, 6 + 1j]
    assert z.real._base is z
    assert z[1:].imag.tolist() == [1.0]
    assert core.view_as_complex(core.view_as_real(z)).data_ptr() == z.data_ptr()
    x = core.ones(3)
    assert x.real is x
    with pytest.raises(RuntimeError, match="imag"):
        x.imag


def test_a_transpose_of_H_is_conjugated() -> None:
    z = core.tensor([[1 + 1j, 2j]])
    assert z.H.tolist() == z.mH.tolist() == z.adjoint().tolist() == [[1 - 1j], [-2j]]
    assert z.T.tolist() == [[1 + 1j], [2j]]


def test_a_complex_number_does_not_lose_its_imaginary_part() -> None:
    x = core.ones(2)
    for call in (
        lambda: x.fill_(1j),
        lambda: x.mul_(1j),
        lambda: core.full((2,), 1j, dtype=core.float32),
        lambda: x.clamp(1j),
        lambda: core.tensor([1j], dtype=core.float32),
    ):
        with pytest.raises((RuntimeError, TypeError)):
            call()
    assert x.tolist() == [1.0, 1.0]


def test_order_is_not_defined() -> None:
    z = core.tensor([1 + 1j, 2j])
    for call in (z.max, z.amax, z.sort, z.argmax, z.floor, lambda: z < z, lambda: z.clamp(0, 1), z.relu):
        with pytest.raises((RuntimeError, NotImplementedError)):
            call()


# The texts that PyTorch prints.
PRINTED = {
    "tensor([1.+2.j, 3.-4.j])": [1 + 2j, 3 - 4j],
    "tensor([0.5000+1.j, 1.5000-2.j])": [0.5 + 1j, 1.5 - 2j],
    "tensor(0.+1.j)": 1j,
    "tensor([1.+0.j, nan+infj])": [1, complex("nan+infj")],
    "tensor([1.0000e+00+1.0000e+04j, 1.0000e+05+1.0000e+00j])": [1 + 1e4j, 1e5 + 1j],
}


@pytest.mark.parametrize("text", PRINTED)
def test_printing(text: str) -> None:
    assert repr(core.tensor(PRINTED[text], dtype=core.complex64)) == text


def test_printing_names_the_wider_dtype() -> None:
    assert repr(core.tensor([1j], dtype=core.complex128)) == "tensor([0.+1.j], dtype=torch.complex128)"


def test_products_of_matrices() -> None:
    generator = np.random.default_rng(1)

    def random(*shape: int) -> np.ndarray:
        return generator.normal(size=shape) + 1j * generator.normal(size=shape)

    for a, b in (
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((70, 65), (65, 33)),
        ((1, 4), (4, 1)),
        ((3, 0), (0, 2)),
    ):
        x, y = random(*a), random(*b)
        np.testing.assert_allclose((core.tensor(x) @ core.tensor(y)).numpy(), x @ y, atol=1e-12)
        np.testing.assert_allclose((core.tensor(x).mT.clone().mT @ core.tensor(y)).numpy(), x @ y, atol=1e-12)
    v, w = random(7), random(7)
    np.testing.assert_allclose(core.dot(core.tensor(v), core.tensor(w)).item(), v @ w)
    np.testing.assert_allclose(core.vdot(core.tensor(v), core.tensor(w)).item(), np.vdot(v, w))


def test_random_numbers() -> None:
    z = core.randn(20000, dtype=core.complex128, generator=core.Generator().manual_seed(3))
    assert abs(z.mean().item()) < 0.03
    assert abs(z.var().item() - 1) < 0.03
    assert abs(z.real.var().item() - 0.5) < 0.02
    u = core.empty(4, 1000, dtype=core.complex64).t().uniform_(1, 2)
    for part in (u.real, u.imag):
        assert 1 <= part.amin() < 1.01 < 1.99 < part.amax() < 2


REAL_ONLY = {
    "dropout(): argument 'p'": lambda x: core.dropout(x, 1j, True),
    "softplus(): argument 'beta'": lambda x: core.softplus(x, 1j),
    "isclose(): argument 'rtol'": lambda x: core.isclose(x, x, 1j),
    "normal_(): argument 'mean'": lambda x: x.normal_(1j),
    "cumsum(): argument 'dim'": lambda x: x.cumsum(1j),
    "sum(): argument 'keepdim'": lambda x: x.sum(0, 1j),
}


@pytest.mark.parametrize("said", REAL_ONLY)
def test_where_a_real_number_is_needed(said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said) + ".* not complex"):
        REAL_ONLY[said](core.ones(2, 2))


def test_complex_numbers_do_not_fit_real_tensors() -> None:
    x = core.ones(3)
    for write in (
        lambda: x.index_fill(0, core.tensor([0]), 1j),
        lambda: x.masked_fill(x > 0, 1j),
        lambda: x.add(x, alpha=1j),
        lambda: x.fill_(1j),
        lambda: x.__setitem__(0, 1j),
        lambda: core.full((2,), 1j, dtype=core.int64),
    ):
        with pytest.raises(RuntimeError, match=r"does not fit"):
            write()
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("transposed", [False, True])
def test_convolution(transposed: bool) -> None:
    """A complex convolution is bilinear, so it can be computed from convolutions of the parts."""
    random = np.random.default_rng(1)

    def parts(*shape: int):
        return core.tensor(random.normal(size=shape)), core.tensor(random.normal(size=shape))

    (a, b), (p, q), (r, s) = parts(2, 4, 6, 5), parts(4, 2, 3, 2), parts(4)
    conv = core.conv_transpose2d if transposed else core.conv2d
    how = {"stride": 2, "padding": 1, "groups": 2}
    result = conv(core.complex(a, b), core.complex(p, q), core.complex(r, s), **how)
    assert_close(result.real, conv(a, p, r, **how) - conv(b, q, **how))
    assert_close(result.imag, conv(a, q, s, **how) + conv(b, p, **how))
    with pytest.raises(NotImplementedError, match="complex128"):
        conv(core.complex(a, b), p, **how)


def test_embedding() -> None:
    table = core.complex(core.randn(5, 3), core.randn(5, 3))
    rows = core.tensor([[4, 0], [4, 4]])
    assert core.embedding(table, rows).tolist() == table[rows].tolist()


def test_copies_of_parts_and_of_pairs() -> None:
    z = core.tensor([[1 + 2j, 3 - 4j]])
    pairs = core.view_as_real_copy(z)
    again = core.view_as_complex_copy(pairs)
    assert again.tolist() == z.tolist()
    pairs.zero_()
    assert again.tolist() == z.tolist() == [[1 + 2j, 3 - 4j]]


def test_real_and_complex_dtypes_of_a_dtype() -> None:
    assert [d.to_real() for d in (core.complex64, core.complex128, core.float16, core.int8)] == [
        core.float32, core.float64, core.float16, core.int8,
    ]  # fmt: skip
    assert [d.to_complex() for d in (core.bfloat16, core.float32, core.float64, core.complex128)] == [
        core.complex64, core.complex64, core.complex128, core.complex128,
    ]  # fmt: skip
    for none in (core.int64, core.bool, core.float16):
        with pytest.raises(RuntimeError, match="to_complex"):
            none.to_complex()


def test_python_numbers_of_complex_tensors() -> None:
    assert float(core.tensor([2.5 + 0j])) == 2.5
    assert int(core.tensor(-3 + 0j)) == -3
    for kind in (float, int):
        with pytest.raises(RuntimeError, match="imaginary part"):
            kind(core.tensor(1 + 2j))
        with pytest.raises(ValueError, match="2 elements"):
            kind(core.tensor([1j, 2j]))


def test_bits_of_what_has_none() -> None:
    for t in (core.ones(2), core.tensor(1j), core.ones(1, dtype=core.float16)):
        with pytest.raises(TypeError, match=r"~: must be a tensor of integers"):
            ~t
        with pytest.raises(NotImplementedError):
            core.bitwise_not(t)


def test_absolute_values_neither_overflow_nor_underflow() -> None:
    parts = [0.0, -0.0, 3.0, -4.0, 1e-45, 1e-30, 1e30, -3e38, math.inf, -math.inf, math.nan]
    pairs = [complex(a, b) for a in parts for b in parts]
    for dtype in (core.complex64, core.complex128):
        for x in (core.tensor(pairs, dtype=dtype), core.tensor(pairs * 2, dtype=dtype)[::2]):
            z = x.numpy().astype("complex128")
            with np.errstate(all="ignore"):
                wanted = np.hypot(z.real, z.imag).astype(x.abs().numpy().dtype)
                unit = (z.real / wanted) + 1j * (z.imag / wanted)
            np.testing.assert_allclose(x.abs().numpy(), wanted, rtol=1.2e-7)
            usual = np.isfinite(z.real) & np.isfinite(z.imag) & np.isfinite(wanted) & (wanted > 1e-37)
            np.testing.assert_allclose(x.sgn().numpy()[usual], unit[usual], rtol=3e-7)
    assert core.tensor([0j]).sgn().tolist() == [0j]


def test_running_sums_of_complex_exponentials_at_infinity() -> None:
    """exp(inf + bj) is infinite in the direction b, and the directions of infinities are added."""
    inf = math.inf
    rows = core.tensor(
        [[complex(inf, 0), complex(inf, 1)], [complex(inf, 2), complex(-inf, 1)], [1j, complex(inf, 2)]]
    )
    assert_close(
        core.logcumsumexp(rows, 1)[:, 1],
        core.tensor([complex(inf, math.pi / 4), complex(inf, 2), complex(inf, 2)]),
    )
    opposite = core.tensor([complex(inf, 0.5), complex(inf, 0.5 + math.pi)], dtype=core.complex128)
    total = core.logcumsumexp(opposite, 0)[1]
    assert total.real.isnan()


@pytest.mark.parametrize("dtype", [core.complex64, core.complex128])
@pytest.mark.parametrize("n", [1, 40])
def test_quotients_of_subnormal_numbers(dtype: core.dtype, n: int) -> None:
    part = core.float32 if dtype is core.complex64 else core.float64
    tiny = core.finfo(part).tiny / 1024
    divisor = core.full((n,), complex(tiny, tiny / 2), dtype=dtype)
    assert (divisor / divisor).tolist() == [1] * n
    assert (divisor * 1j / divisor).tolist() == [1j] * n
    assert (divisor / (divisor * 4j)).tolist() == [-0.25j] * n


@pytest.mark.parametrize("dtype", [core.complex64, core.complex128])
def test_functions_of_large_complex_numbers_are_finite(dtype: core.dtype) -> None:
    largest = core.finfo(dtype).max
    z = core.tensor([-80 + 1j, -1e4 + 3j, 1e4 - 3j, complex(-largest, 1)], dtype=dtype)
    sigmoid = core.sigmoid(z)
    assert core.allclose(sigmoid[:1] / core.exp(z[:1]), core.ones(1, dtype=dtype))
    assert sigmoid[1:].tolist() == [0, 1, 0]
    assert (core.tensor([largest * (0.3 + 0.4j)], dtype=dtype) ** -2).abs().item() == pytest.approx(0)
