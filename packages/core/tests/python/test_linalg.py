"""`rushlight.linalg`: properties that samples cannot show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import rushlight_core as rl


def test_names_of_arguments() -> None:
    """Arguments have PyTorch's documented names, and the former names of its operators."""
    a = rl.randn(3, 3)
    assert rl.equal(rl.linalg.norm(A=a), rl.linalg.norm(input=a))
    assert rl.equal(rl.linalg.vector_norm(x=a, ord=1), rl.linalg.vector_norm(a, 1))
    assert rl.equal(rl.linalg.matrix_power(A=a, n=2), rl.matrix_power(a, 2))
    assert rl.linalg.diagonal(a).data_ptr() == a.data_ptr()
    out = rl.empty(0)
    assert rl.linalg.matrix_norm(a, "fro", out=out) is out


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 300.0])
def test_matrix_exp_of_any_norm(scale: float) -> None:
    """Antisymmetric matrices have orthogonal exponentials, however large they are."""
    a = rl.randn(4, 5, 5, dtype=rl.float64) * scale
    a = a - a.mT
    q = rl.linalg.matrix_exp(a)
    assert rl.allclose(q @ q.mT, rl.eye(5, dtype=rl.float64).expand(4, 5, 5), atol=1e-10)
    wanted = np.stack([scipy.linalg.expm(one) for one in a.numpy()])
    np.testing.assert_allclose(q.numpy(), wanted, rtol=0, atol=1e-9)


def test_matrix_exp_of_float32_loses_little_by_squaring() -> None:
    a = rl.randn(20, 5, 5, dtype=rl.float64, generator=rl.Generator().manual_seed(0)) * 4
    wanted = rl.linalg.matrix_exp(a)
    apart = (rl.linalg.matrix_exp(a.float()).double() - wanted).abs().amax((1, 2)) / wanted.abs().amax((1, 2))
    assert float(apart.median()) < 1.2e-6


def test_matrix_exp_scales_each_matrix_by_itself() -> None:
    """A large matrix in the batch does not change the bits of others, and NaN and infinities affect only their matrix."""
    small = rl.randn(3, 3)
    alone = rl.matrix_exp(small)
    both = rl.matrix_exp(rl.stack([small, small * 100, rl.full((3, 3), float("nan"))]))
    assert rl.equal(both[0], alone)
    assert bool(rl.isnan(both[2]).all())
    assert rl.equal(rl.matrix_exp(rl.zeros(2, 2)), rl.eye(2))


def test_products_in_the_best_order() -> None:
    """Multiplied from left to right, the first product would have 10^12 elements."""
    column, row = rl.ones(10**6, 1), rl.ones(1, 10**6)
    assert rl.chain_matmul(row, column, row, column).item() == pytest.approx(1e12)


def test_what_a_matrix_lacks_is_a_typed_error() -> None:
    """The error has PyTorch's class, a RuntimeError, and its message names the position in the batch."""
    assert issubclass(rl.linalg.LinAlgError, RuntimeError)
    singular = rl.stack([rl.eye(3), rl.ones(3, 3), rl.eye(3)])
    for call in (
        lambda: rl.linalg.inv(singular),
        lambda: rl.linalg.solve(singular, rl.ones(3)),
        lambda: rl.linalg.matrix_power(singular, -2),
        lambda: rl.linalg.lu_factor_ex(singular, check_errors=True),
    ):
        with pytest.raises(rl.linalg.LinAlgError, match=r"matrix 1 of the batch .*singular"):
            call()
    with pytest.raises(rl.linalg.LinAlgError, match=r"matrix is not positive-definite: .*order 2"):
        rl.linalg.cholesky(rl.diag(rl.tensor([1.0, -1.0, 1.0])))
    assert rl.linalg.inv_ex(singular).info.tolist()[0::2] == [0, 0]
    assert rl.linalg.inv_ex(singular).info.dtype == rl.int32
    with pytest.raises(rl.linalg.LinAlgError):
        rl.linalg.svd(rl.full((3, 3), float("nan")))
    infinite = rl.eye(3)
    infinite[0, 2] = float("inf")
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        for a, b in ((infinite, rl.eye(3)), (rl.eye(3), infinite)):
            with pytest.raises(rl.linalg.LinAlgError, match="not finite"):
                rl.linalg.lstsq(a, b, driver=driver)


SHAPES = [
    (3, 3),
    (16, 16),
    (17, 17),
    (16, 9),
    (5, 3),
    (3, 5),
    (2, 4, 4),
    (2, 0, 3),
    (0, 3, 3),
    (40, 40),
    (3, 200, 150),
]


def near(a: rl.Tensor, b: rl.Tensor) -> None:
    assert a.shape == b.shape
    assert rl.allclose(a, b, rtol=1e-9, atol=1e-9)


DTYPES = [rl.float64, rl.complex128]


def random(*shape: int, dtype: rl.dtype = rl.float64) -> rl.Tensor:
    real = rl.randn(shape, dtype=rl.float64)
    return rl.complex(real, rl.randn(shape, dtype=rl.float64)) if dtype.is_complex else real


def one(n: int, dtype: rl.dtype = rl.float64) -> rl.Tensor:
    return rl.eye(n, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_decompositions_multiply_back(shape: tuple[int, ...], dtype: rl.dtype) -> None:
    """Factors multiply to the matrix for every memory order, and for sizes below and above LAPACK's block size."""
    dense = random(*shape, dtype=dtype)
    m, n = shape[-2:]
    for a in (dense, dense.mT.contiguous().mT, rl.stack([dense, dense], -1)[..., 0]):
        p, lower, upper = rl.linalg.lu(a)
        near(p @ lower @ upper, a)
        for mode in ("reduced", "complete"):
            q, r = rl.linalg.qr(a, mode)
            near(q @ r, a)
            near(q.mH @ q, one(q.size(-1), dtype).expand(*shape[:-2], -1, -1))
            assert rl.equal(r, r.triu())
        near(rl.linalg.qr(a, "r").R.abs(), rl.linalg.qr(a).R.abs())
        for full in (False, True):
            u, s, vh = rl.linalg.svd(a, full)
            k = s.size(-1)
            near(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a)
            near(u.mH @ u, one(u.size(-1), dtype).expand(*shape[:-2], -1, -1))
            near(vh @ vh.mH, one(vh.size(-2), dtype).expand(*shape[:-2], -1, -1))
        if m >= n:
            near(rl.linalg.householder_product(*rl.geqrf(a)), rl.linalg.qr(a).Q)
            x = random(*shape[:-2], m, 2, dtype=dtype)
            near(rl.ormqr(*rl.geqrf(a), x), rl.linalg.qr(a, "complete").Q @ x)


@pytest.mark.parametrize("n", [1, 3, 16, 17, 150])
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_symmetric_matrices(n: int, uplo: str, dtype: rl.dtype) -> None:
    """Only one triangle is used; the contents of the other triangle have no effect."""
    a = random(2, n, n, dtype=dtype)
    upper = uplo == "U"
    a.diagonal(0, -2, -1).copy_(random(2, n))  # Hermitian matrices have a real diagonal
    triangle = a.triu() if upper else a.tril()
    symmetric = triangle + (triangle.triu(1) if upper else triangle.tril(-1)).mH
    values, vectors = rl.linalg.eigh(a, uplo)
    near(symmetric @ vectors, vectors * values[:, None, :])
    near(vectors.mH @ vectors, one(n, dtype).expand(2, n, n))
    near(rl.linalg.eigvalsh(a, uplo), values)
    positive = symmetric @ symmetric + one(n, dtype)
    factor = rl.linalg.cholesky(positive.triu() if upper else positive.tril(), upper=upper)
    near(factor.mH @ factor if upper else factor @ factor.mH, positive)
    b = random(2, n, 3, dtype=dtype)
    near(positive @ rl.cholesky_solve(b, factor, upper), b)
    near(rl.cholesky_inverse(factor, upper), rl.linalg.inv(positive))
    factors, pivots, info = rl.linalg.ldl_factor_ex(symmetric.tril(), hermitian=True)
    assert info.tolist() == [0, 0]
    near(rl.linalg.ldl_solve(factors, pivots, symmetric @ b, hermitian=True), b)
    same = a + a.mT
    near(rl.linalg.ldl_solve(*rl.linalg.ldl_factor(same), same @ b), b)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_eigenvalues(n: int, dtype: rl.dtype) -> None:
    a = random(3, n, n, dtype=dtype)
    for x in (a, a.mT, a.to(rl.complex64 if dtype.is_complex else rl.float32)):
        values, vectors = rl.linalg.eig(x)
        assert values.dtype == vectors.dtype == rl.promote_types(x.dtype, rl.complex64)
        exact = x.dtype == dtype
        rest = x.to(vectors.dtype) @ vectors - vectors * values[:, None, :]
        assert rest.abs().max().item() < (1e-10 if exact else 1e-3)
        assert rl.allclose(
            rl.linalg.vector_norm(vectors, dim=1), rl.ones(3, n).to(rest.real.dtype), atol=1e-5
        )
        assert rl.allclose(rl.linalg.eigvals(x), values, atol=1e-10 if exact else 1e-3)


def test_least_squares() -> None:
    a, b = rl.randn(7, 4, dtype=rl.float64), rl.randn(7, 2, dtype=rl.float64)
    solution, sums, rank, values = np.linalg.lstsq(a.numpy(), b.numpy(), rcond=None)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        got = rl.linalg.lstsq(a, b, driver=driver)
        np.testing.assert_allclose(got.solution.numpy(), solution)
        if driver == "gelsy":
            assert got.residuals.numel() == 0
        else:
            np.testing.assert_allclose(got.residuals.numpy(), sums)
        assert got.rank.tolist() == ([] if driver == "gels" else rank)
        if driver in ("gelsd", "gelss"):
            np.testing.assert_allclose(got.singular_values.numpy(), values)
        else:
            assert got.singular_values.numel() == 0
    twice = rl.cat([a, a], 1)
    assert rl.linalg.lstsq(twice, b, driver="gelsd").rank.item() == 4
    assert rl.linalg.lstsq(twice.mT.contiguous(), twice.mT @ a).residuals.shape == (0,)
    assert rl.linalg.lstsq(a, b[:, 0]).solution.shape == (4,)


def test_tolerances() -> None:
    """As in PyTorch, rtol has a default unless an atol above 0 is given."""
    a = rl.diag(rl.tensor([10.0, 1.0, 1e-3, 0.0]))
    assert rl.linalg.matrix_rank(a).item() == 3
    assert rl.linalg.matrix_rank(a, atol=0.1).item() == 2
    assert rl.linalg.matrix_rank(a, rtol=0.5).item() == 1
    assert rl.linalg.matrix_rank(a, 2.0).item() == 1
    assert rl.linalg.matrix_rank(rl.stack([a, a]), atol=rl.tensor([0.1, 5.0])).tolist() == [2, 1]
    assert rl.linalg.pinv(a, rtol=0.5)[1, 1].item() == 0
    assert rl.linalg.pinv(a, hermitian=True).diag().tolist() == pytest.approx([0.1, 1.0, 1000.0, 0.0])
    assert rl.linalg.cond(a).item() > 1e9
    assert rl.linalg.cond(rl.ones(2, 2), 1).item() == float("inf")


def test_old_names() -> None:
    a = rl.randn(3, 3) + 4 * rl.eye(3)
    assert rl.equal(a.inverse(), rl.linalg.inv(a))
    assert rl.equal(a.det(), rl.linalg.det(a))
    assert rl.equal(a.slogdet().logabsdet, rl.linalg.slogdet(a).logabsdet)
    assert rl.equal(a.qr().R, rl.linalg.qr(a).R)
    u, s, v = a.svd()
    assert rl.allclose(u * s @ v.mT, a, atol=1e-5)
    assert rl.svd(a, compute_uv=False).U.count_nonzero().item() == 0
    assert rl.allclose(
        rl.ones(3, 1).triangular_solve(a).solution, rl.linalg.solve(a.triu(), rl.ones(3, 1)), atol=1e-5
    )
    assert rl.allclose(
        rl.lu_solve(rl.ones(3, 1), *rl.linalg.lu_factor(a)), rl.linalg.solve(a, rl.ones(3, 1)), atol=1e-5
    )


def test_lu_of_old_programs() -> None:
    a = rl.randn(2, 3, 3)
    factors, pivots = rl.lu(a)
    assert rl.equal(factors, rl.linalg.lu_factor(a).LU)
    assert [x.shape for x in a.lu(get_infos=True)] == [(2, 3, 3), (2, 3), (2,)]
    out = (rl.empty(0), rl.empty(0, dtype=rl.int32))
    assert rl.lu(a, out=out)[1] is out[1]
    assert rl.equal(out[1], pivots)
    with pytest.raises(rl.linalg.LinAlgError, match="singular"):
        rl.zeros(2, 2).lu()


def test_norms_of_nothing() -> None:
    """Norms and condition numbers of matrices without elements are 0."""
    for shape in ((0, 0), (2, 0, 0)):
        a = rl.ones(shape)
        for order in (1, 2, float("inf"), "nuc", "fro"):
            assert rl.linalg.matrix_norm(a, order).tolist() == rl.zeros(shape[:-2]).tolist()
            assert rl.linalg.cond(a, order).tolist() == rl.zeros(shape[:-2]).tolist()


@pytest.mark.parametrize("order", ["nuc", "fro", 1, -1, float("inf"), 2, None])
def test_the_condition_number_of_singular_matrices(order: Any) -> None:
    matrices = rl.stack([rl.eye(3), rl.diag(rl.tensor([1.0, 1.0, 0.0]))])
    regular, singular = rl.linalg.cond(matrices, order).tolist()
    assert regular == pytest.approx({"nuc": 9.0, "fro": 3.0}.get(order, 1.0))
    assert singular == float("inf")


@pytest.mark.parametrize("order", ["nuc", "fro", 1, -1, 2, -2, float("inf"), float("-inf"), None])
def test_the_dtype_of_norms_of_complex_matrices(order: Any) -> None:
    a = rl.tensor([[1 + 2j, 3j], [0.5, -1j]])
    norm = rl.linalg.norm(a, order, dtype=rl.complex128)
    assert norm.dtype == rl.float64
    assert norm.item() == pytest.approx(rl.linalg.norm(a.to(rl.complex128), order).item())
    with pytest.raises(RuntimeError, match="must be complex"):  # the imaginary parts would be lost
        rl.linalg.norm(a, order, dtype=rl.float64)


@pytest.mark.parametrize("n", [2, 16, 17, 40])
def test_what_is_not_a_number(n: int) -> None:
    """Small matrices, for which LAPACK is not called, and larger matrices treat NaN in the same way."""
    a = rl.eye(n)
    a[1, 1] = float("nan")
    assert rl.linalg.cholesky_ex(a).info.item() == 2
    assert bool(rl.isnan(rl.linalg.det(a)))
    assert bool(rl.isnan(rl.linalg.inv(a)).any())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.complex64, rl.complex128])
@pytest.mark.parametrize("n", [2, 16, 17, 40])
def test_determinant_of_zeros_and_what_is_not_finite(n: int, dtype: rl.dtype, value: float) -> None:
    """A zero times NaN or an infinity is NaN, wherever the elements stand."""
    for row, column in ((0, 0), (0, n - 1), (n - 1, 0), (n - 1, n - 1)):
        a = rl.zeros(n, n, dtype=dtype)
        a[row, column] = value
        for matrix in (a, a.mT, rl.stack([rl.eye(n, dtype=dtype), a])[1]):
            sign, logarithm = rl.linalg.slogdet(matrix)
            assert bool(rl.isnan(rl.linalg.det(matrix)))
            assert bool(rl.isnan(sign))
            assert bool(rl.isnan(logarithm))
    assert rl.linalg.det(rl.zeros(n, n, dtype=dtype)).item() == 0


def test_low_rank() -> None:
    a = rl.randn(2, 30, 3, dtype=rl.float64) @ rl.randn(2, 3, 20, dtype=rl.float64)
    for x in (a, a.mT):
        u, s, v = rl.svd_lowrank(x, q=4)
        near(u * s[:, None, :] @ v.mT, x)
        near(s[:, :3], rl.linalg.svdvals(x)[:, :3])
    mean = a.mean(-2, True)
    _, s, _ = rl.pca_lowrank(a, q=3)
    near(s, rl.linalg.svdvals(a - mean)[:, :3])
    for shape in ((3, 2), (2, 3), (0, 3), (2, 0)):  # there are fewer singular values than the default of q
        u, s, v = rl.svd_lowrank(rl.ones(shape))
        least = min(shape)
        assert (u.shape, s.shape, v.shape) == ((shape[0], least), (least,), (shape[1], least))
    u, s, v = rl.svd_lowrank(a, q=5, M=mean)
    near(u * s[:, None, :] @ v.mT, a - mean)
    for call in (
        lambda: rl.svd_lowrank(a, q=-1),
        lambda: rl.pca_lowrank(a, niter=-1),
        lambda: rl.svd_lowrank(a[0, 0]),
        lambda: rl.svd_lowrank(rl.tensor(1.0)),
    ):
        with pytest.raises(ValueError, match="lowrank"):
            call()


def test_factors_of_lu_are_contiguous() -> None:
    for shape in ((3, 3), (3, 2), (2, 2, 3)):
        a = rl.arange(float(np.prod(shape))).view(shape).flip(-2)
        factors = rl.linalg.lu(a)
        assert all(factor.is_contiguous() for factor in factors)
        assert rl.allclose(factors.P @ factors.L @ factors.U, a, atol=1e-5)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.complex64, rl.complex128])
@pytest.mark.parametrize("n", [2, 5, 16])
def test_pivots_may_be_subnormal(n: int, dtype: rl.dtype) -> None:
    """The reciprocal of a subnormal pivot is infinite, so rows are divided by the pivot. OpenBLAS omits the division."""
    tiny = rl.finfo(dtype).tiny / 64
    a = rl.triu(rl.ones(n, n, dtype=dtype)) * tiny
    a[1:, 0] = tiny / 2
    factors = rl.linalg.lu_factor_ex(a).LU
    assert factors[1:, 0].tolist() == [0.5] * (n - 1)
    assert rl.linalg.det(rl.tensor([[tiny, 0], [tiny, 0]], dtype=dtype)).item() == 0


@pytest.mark.parametrize("rows", [3, 16, 64, 65])
def test_long_sums_of_products_are_precise(rows: int) -> None:
    """Sums along the inner dimension are split, so that rounding errors do not grow with its length."""
    a, b = rl.full((rows, 1 << 17), 0.1), rl.full((1 << 17, 2), 0.1)
    exact = (1 << 17) * a[0, 0].double() ** 2
    assert float(((a @ b).double() / exact - 1).abs().max()) < 1e-5


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("n", [1, 2, 5, 16])
@pytest.mark.parametrize("scale", [1e-44, 1e-41, 1e-38, 1e37])
def test_small_complex_systems_of_very_small_numbers(scale: float, n: int, left: bool) -> None:
    """Quotients of subnormal complex numbers are finite."""
    rl.manual_seed(0)
    wide = rl.eye(n, dtype=rl.complex128) * (3 - 2j) + rl.randn(n, n, dtype=rl.complex128) / n
    a = (wide * scale).to(rl.complex64)
    b = (rl.randn(n, n, dtype=rl.complex128) * scale).to(rl.complex64)
    exact = rl.linalg.solve(a.to(rl.complex128), b.to(rl.complex128), left=left)
    found = rl.linalg.solve(a, b, left=left).to(rl.complex128)
    # The products of subnormal numbers have few digits.
    tolerance = 1e-5 + 1e-45 / scale
    assert float((found - exact).abs().max() / exact.abs().max()) < 8 * n * tolerance
    if scale > 1e-38:
        inverse = rl.linalg.inv(a).to(rl.complex128)
        exact = rl.linalg.inv(a.to(rl.complex128))
        assert float((inverse - exact).abs().max() / exact.abs().max()) < 1e-4


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.complex64, rl.complex128], ids=str)
def test_qr_does_not_depend_on_the_sign_of_a_zero(dtype):
    for first in (0.0, 0.5j) if dtype.is_complex else (0.0,):
        a = rl.tensor([[first, 2.0], [1.0, 3.0]], dtype=dtype)
        b = a.clone()
        rl.view_as_real(b)[0, 0, 0].neg_() if dtype.is_complex else b[0, 0].neg_()
        assert all(rl.equal(x, y) for x, y in zip(rl.linalg.qr(a), rl.linalg.qr(b), strict=True))
        assert all(rl.equal(x, y) for x, y in zip(rl.geqrf(a), rl.geqrf(b), strict=True))


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 3), (3, 5), (16, 16), (16, 7), (1, 16), (17, 16)])
def test_small_qr_has_the_signs_of_lapack(shape: tuple[int, int], dtype: rl.dtype) -> None:
    """Matrices of all scales are decomposed in one batch. geqrf always calls LAPACK."""
    rl.manual_seed(0)
    # Matrices of small condition, so that both results have small errors, and of both signs.
    a = rl.eye(*shape, dtype=dtype) + 0.1 * rl.randn(9, *shape, dtype=dtype)
    a *= rl.randn(shape[0], 1, dtype=dtype).sign()
    bound = 64 * rl.finfo(dtype).eps
    a[1, :, 0] = 0  # no reflector
    a[2, 1:, 0] = -0.0
    a[3] = 0
    scales = [1e-30, 1e30] if dtype == rl.float32 else [1e-200, 1e200]
    a[4] *= scales[0]
    a[5] *= scales[1]
    a[6, 0, 0] = rl.finfo(dtype).smallest_normal / 4
    a[7, -1, -1] = math.nan
    a[8, -1, 0] = math.inf
    tall = rl.cat([a[:7], a[:2]])
    for mode in ("reduced", "complete"):
        q, r = rl.linalg.qr(tall, mode)
        assert (q.mT @ q - one(q.size(-1), dtype)).abs().max() < bound
        expected = rl.geqrf(tall)[0].triu()[:, : r.size(1)]
        size = expected.abs().amax((1, 2), keepdim=True).clamp_min(rl.finfo(dtype).smallest_normal)
        assert ((r - expected) / size).abs().max() < bound
        assert (q @ (r / size) - tall / size).abs().max() < bound
    assert rl.equal(rl.linalg.qr(tall, "r").R, rl.linalg.qr(tall).R)
    for matrix in a[7:]:
        assert not all(part.isfinite().all() for part in rl.linalg.qr(matrix))
    alone = [rl.linalg.qr(matrix) for matrix in a[:7]]  # a matrix does not depend on the other matrices
    assert rl.equal(rl.stack([q for q, _ in alone]), rl.linalg.qr(a).Q[:7])


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.complex64], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 15, 16, 17])
def test_columns_are_solved_as_if_alone(n: int, dtype: rl.dtype) -> None:
    """Several columns of a small system are solved together. A row of NaN in one of them does not change the others."""
    rl.manual_seed(0)
    a = 0.1 * rl.randn(2, n, n, dtype=dtype) + rl.eye(n, dtype=dtype)
    a[1] = a[1].flip(0)  # rows are exchanged
    for count in (1, 3, 4, 5, 8, 9, 12, 13, 20):
        b = rl.randn(2, n, count, dtype=dtype)
        b[0, n // 2, count // 2] = math.nan
        x, y = rl.linalg.solve(a, b), rl.linalg.solve(a, b.mT, left=False)
        bound = 1e-12 if dtype == rl.float64 else 1e-4
        for k in range(count):
            column, row = (
                rl.linalg.solve(a, b[:, :, k : k + 1]),
                rl.linalg.solve(a, b.mT[:, k : k + 1], left=False),
            )
            assert rl.allclose(x[:, :, k : k + 1], column, rtol=bound, atol=bound, equal_nan=True)
            assert rl.allclose(y[:, k : k + 1], row, rtol=bound, atol=bound, equal_nan=True)
        good = [k for k in range(count) if k != count // 2]
        assert rl.allclose((a @ x)[..., good], b[..., good], rtol=bound * 10, atol=bound * 10)
        assert rl.allclose((y @ a)[:, good], b.mT[:, good], rtol=bound * 10, atol=bound * 10)
    assert rl.allclose(
        rl.linalg.inv(a) @ a, rl.eye(n, dtype=dtype).expand(2, -1, -1), rtol=bound * 10, atol=bound * 10
    )


_NORMS = [
    lambda x, dtype: rl.linalg.vector_norm(x, dtype=dtype),
    lambda x, dtype: rl.linalg.vector_norm(x, 1, dtype=dtype),
    lambda x, dtype: rl.linalg.matrix_norm(x, dtype=dtype),
    lambda x, dtype: rl.linalg.matrix_norm(x, 2, dtype=dtype),
    lambda x, dtype: rl.linalg.norm(x, dtype=dtype),
    lambda x, dtype: rl.norm(x, 2, dtype=dtype),
    lambda x, dtype: rl.norm(x, 1, dtype=dtype),
]


@pytest.mark.parametrize("norm", _NORMS)
def test_norms_are_real_and_computed_in_the_dtype(norm: Any) -> None:
    """The dtype of a norm of complex numbers is complex, and the result is real."""
    x = rl.full((2, 2), 2.0**-30, dtype=rl.float32)
    wide = norm(x, rl.float64)
    assert wide.dtype == rl.float64
    assert rl.equal(wide, norm(x.double(), None))
    z = rl.complex(x, 2 * x)
    assert norm(z, rl.complex128).dtype == rl.float64
    assert rl.equal(norm(z, rl.complex128), norm(z.to(rl.complex128), None))
    assert norm(z, rl.complex64).dtype == rl.float32


@pytest.mark.parametrize("norm", _NORMS)
def test_norms_refuse_dtypes_that_lose_the_input(norm: Any) -> None:
    x = rl.ones(2, 2)
    for given, dtype in [
        (x, rl.complex64),
        (x, rl.int32),
        (x, rl.float16),
        (x.double(), rl.float32),
        (x.to(rl.complex64), rl.float32),
        (x.to(rl.complex128), rl.complex64),
    ]:
        with pytest.raises(RuntimeError, match="dtype"):
            norm(given, dtype)


@pytest.mark.parametrize("ord", [None, 2, "fro"])
@pytest.mark.parametrize("dim", [(), (0, 1, 2)])
def test_norm_of_too_few_or_too_many_dimensions(ord: Any, dim: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError, match="dim"):
        rl.linalg.norm(rl.ones(2, 2, 2), ord, dim)
