"""Complex matrix products of all layouts, compared with NumPy's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import rushlight_core as core

SHAPES = [
    (1, 1, 1),
    (1, 5, 1),
    (1, 5, 7),
    (2, 3, 2),
    (3, 1, 4),
    (4, 33, 50),
    (8, 6, 9),
    (9, 6, 9),
    (20, 17, 1),
    (40, 24, 40),
    (70, 130, 65),
    (0, 3, 2),
    (3, 0, 2),
    (3, 2, 0),
]
LAYOUTS = ["rows", "columns", "strided", "reversed"]


def made(chosen: np.random.Generator, shape: Sequence[int], dtype: core.dtype, layout: str) -> core.Tensor:
    """Return a random tensor with the given layout of its last two dimensions."""
    *batch, rows, columns = shape
    if layout == "columns":
        return made(chosen, (*batch, columns, rows), dtype, "rows").mT
    if layout == "strided":
        return made(chosen, (*batch, rows, 2 * columns), dtype, "rows")[..., ::2]
    values = chosen.normal(size=shape) + 1j * chosen.normal(size=shape)
    x = core.tensor(values, dtype=dtype)
    return x.flip(-1) if layout == "reversed" else x


def check(got: core.Tensor, expected: np.ndarray, dtype: core.dtype, depth: int) -> None:
    """Check that a product over `depth` steps is exact up to rounding."""
    unit = 1e-6 if dtype == core.complex64 else 1e-14
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=unit * (depth + 4))


@pytest.mark.parametrize("dtype", [core.complex64, core.complex128], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_and_sums_of_all_layouts(
    shape: tuple[int, int, int], layout: str, other: str, dtype: core.dtype
) -> None:
    m, k, n = shape
    chosen = np.random.default_rng(3)
    a, b = made(chosen, (m, k), dtype, layout), made(chosen, (k, n), dtype, other)
    product = a.numpy() @ b.numpy()
    check(a @ b, product, dtype, k)
    for addend in [(m, n), (n,), (1, n), (m, 1), (1, 1)]:
        c = made(chosen, (1, *addend), dtype, "rows")[0]
        for beta, alpha in [(1, 1), (0.5, -2), (1j, 2), (2, 1 - 1j), (0, 1j)]:
            check(
                core.addmm(c, a, b, beta=beta, alpha=alpha), beta * c.numpy() + alpha * product, dtype, 3 * k
            )
    c = made(chosen, (m, n), dtype, "rows")
    for beta, alpha in [(1, 1), (0.5j, 1)]:
        changed = c.clone()
        changed.addmm_(a, b, beta=beta, alpha=alpha)
        check(changed, beta * c.numpy() + alpha * product, dtype, k)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batches_vectors_and_broadcast_matrices(shape: tuple[int, int, int], layout: str, other: str) -> None:
    m, k, n = shape
    chosen = np.random.default_rng(4)
    dtype = core.complex128
    a, b = made(chosen, (3, m, k), dtype, layout), made(chosen, (3, k, n), dtype, other)
    check(a @ b, a.numpy() @ b.numpy(), dtype, k)
    check(a @ b[1], a.numpy() @ b[1].numpy(), dtype, k)
    check(a[1].expand(3, m, k).bmm(b), a[1].numpy() @ b.numpy(), dtype, k)
    check(a.bmm(b[2].expand(3, k, n)), a.numpy() @ b[2].numpy(), dtype, k)
    c = made(chosen, (3, 1, n), dtype, "rows")
    check(core.baddbmm(c, a, b, beta=2, alpha=1j), 2 * c.numpy() + 1j * (a.numpy() @ b.numpy()), dtype, 3 * k)
    if k > 0:
        row, column = a[0, 0] if m else b.new_ones(k), b[0, :, 0] if n else b.new_ones(k)
        check(a[0] @ column, a[0].numpy() @ column.numpy(), dtype, k)
        check(row @ b[0], row.numpy() @ b[0].numpy(), dtype, k)
        check(core.dot(row, column), row.numpy() @ column.numpy(), dtype, k)
        check(core.vdot(row, column), row.numpy().conj() @ column.numpy(), dtype, k)


def test_real_factors_scale_the_parts_of_infinite_numbers_separately() -> None:
    a = core.tensor([[complex(float("inf"), 1)]])
    one = core.tensor([[1 + 0j]])
    got = core.addmm(a, one, one, beta=2, alpha=3)
    assert got.real.item() == float("inf")
    assert got.imag.item() == 2


@pytest.mark.parametrize("dtype", [core.complex64, core.complex128])
def test_products_of_complex_numbers(dtype: core.dtype) -> None:
    """Products along all dimensions, with more and with fewer elements than there are accumulators."""
    random = np.random.default_rng(6)
    for n in (0, 1, 5, 31, 32, 33, 63, 64, 100, 5000):
        x = np.exp(1j * random.uniform(0, 6, (n, 3))) * random.uniform(0.9, 1.1, (n, 3))
        t = core.from_numpy(x).to(dtype)
        bound = 1e-4 if dtype is core.complex64 else 1e-11
        wide = t.numpy().astype(np.complex128)
        np.testing.assert_allclose(t.prod().numpy(), wide.prod(), rtol=bound)
        np.testing.assert_allclose(t.prod(0).numpy(), wide.prod(0), rtol=bound)
        np.testing.assert_allclose(t.t().contiguous().prod(1).numpy(), wide.prod(0), rtol=bound)
        np.testing.assert_allclose(core.stack([t, t], 0)[1].t().prod(-1).numpy(), wide.prod(0), rtol=bound)
