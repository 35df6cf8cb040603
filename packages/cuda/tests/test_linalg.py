"""Factorizations of matrices and solutions of systems on the plug-in, compared with the CPU."""

from __future__ import annotations

import math

import pytest

import rushlight as torch

pytestmark = pytest.mark.usefixtures("driver")

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
# 32 columns are eliminated at a time.
SIZES = [(1,), (5,), (33,), (70,), (2, 3, 6), (3, 17), (0,), (0, 4), (2, 0)]
LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "every second": lambda x: torch.stack([x, x], -1)[..., 0],
}


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(*shape, dtype=dtype)


def square(dtype: torch.dtype, size: tuple[int, ...]) -> torch.Tensor:
    return values(dtype, *size, size[-1])


def positive(dtype: torch.dtype, size: tuple[int, ...]) -> torch.Tensor:
    x = square(dtype, size)
    return x @ x.mH + size[-1] * torch.eye(size[-1], dtype=dtype)


def same(call, *given: torch.Tensor) -> None:
    device, host = call(*(t.cuda() for t in given)), call(*given)
    if isinstance(host, torch.Tensor):
        device, host = (device,), (host,)
    for one, other in zip(device, host, strict=True):
        assert one.device.type == "cuda"
        assert one.dtype == other.dtype
        double = given[0].dtype in (torch.float64, torch.complex128)
        scale = max(1.0, float(other.abs().max())) if other.numel() and other.dtype.is_floating_point else 1.0
        tolerance = (1e-10 if double else 1e-3) * scale
        torch.testing.assert_close(one.cpu(), other, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_systems(dtype, size, layout):
    place = LAYOUTS[layout]
    a = square(dtype, size)
    right, beside = values(dtype, *size, 3), values(dtype, *size[:-1], 2, size[-1])
    same(lambda a: torch.linalg.lu_factor(place(a)), a)
    same(lambda a: torch.linalg.inv(place(a)), a)
    same(lambda a: torch.linalg.det(place(a)), a)
    same(lambda a: torch.linalg.slogdet(place(a)), a)
    same(lambda a, b: torch.linalg.solve(place(a), place(b)), a, right)
    same(lambda a, b: torch.linalg.solve(place(a), place(b), left=False), a, beside)
    if size[-1]:
        same(lambda a: torch.linalg.lu(place(a)), a)
        same(lambda a: torch.linalg.lu(place(a[..., :4, :])), a)
        same(lambda a: torch.linalg.lu(place(a[..., :4])), a)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles(dtype, size, layout):
    place = LAYOUTS[layout]
    a = positive(dtype, size)
    right, beside = values(dtype, *size, 3), values(dtype, *size[:-1], 2, size[-1])
    for upper in (False, True):
        same(lambda a, upper=upper: torch.linalg.cholesky(place(a), upper=upper), a)
        for unit in (False, True):
            triangle = a.triu() if upper else a.tril()
            options = {"upper": upper, "unitriangular": unit}
            if unit:
                triangle = triangle / (2 * size[-1] + 1)
            same(
                lambda a, b, o=options: torch.linalg.solve_triangular(place(a), place(b), **o),
                triangle,
                right,
            )
            same(
                lambda a, b, o=options: torch.linalg.solve_triangular(place(a), place(b), left=False, **o),
                triangle,
                beside,
            )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "shape", [(1, 1), (5, 3), (3, 5), (2, 40, 7), (2, 7, 40), (33, 33), (0, 3), (3, 0), (0, 2, 2)]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections(dtype, shape, layout):
    place = LAYOUTS[layout]
    a = values(dtype, *shape)
    for mode in ("reduced", "complete", "r"):
        same(lambda a, mode=mode: torch.linalg.qr(place(a), mode), a)
    if 0 in shape:
        return
    same(lambda a: torch.geqrf(place(a)), a)
    reflectors, tau = torch.geqrf(a)
    other = values(dtype, *shape[:-1], 4)
    for transpose in (False, True):
        same(
            lambda v, t, c, how=transpose: torch.ormqr(place(v), t, place(c), True, how),
            reflectors,
            tau,
            other,
        )
        same(
            lambda v, t, c, how=transpose: torch.ormqr(place(v), t, place(c), False, how),
            reflectors,
            tau,
            other.mT.contiguous(),
        )
    if shape[-2] >= shape[-1]:
        same(lambda v, t: torch.linalg.householder_product(place(v), t), reflectors, tau)


@pytest.mark.parametrize("n", [4, 40])
def test_singular_matrices(n):
    a = values(torch.float64, 3, n, n)
    a[1, :, n // 2] = 0
    a[2, 0, 0] = float("nan")
    same(lambda a: torch.linalg.det(a), a)
    same(lambda a: torch.linalg.slogdet(a), a)
    same(lambda a: torch.linalg.lu_factor_ex(a[:2])[1:], a)
    same(lambda a: torch.linalg.inv_ex(a[:2])[1], a)
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.inv(a[1].cuda())
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.cholesky(-positive(torch.float64, (n,)).cuda())
    b = positive(torch.float64, (3, n))
    b[1, n // 2, n // 2] = -1
    same(lambda b: torch.linalg.cholesky_ex(b)[1], b)


def symmetric(dtype: torch.dtype, size: tuple[int, ...], hermitian: bool) -> torch.Tensor:
    """Return matrices that need pivots of one and of two rows."""
    x = square(dtype, size)
    x = x + (x.mH if hermitian else x.mT)
    diagonal = torch.diag_embed(x.diagonal(0, -2, -1))
    return x - diagonal + diagonal * (torch.arange(size[-1]) % 3 == 0)


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_symmetric_factorizations(dtype, size, layout, hermitian):
    place = LAYOUTS[layout]
    a = symmetric(dtype, size, hermitian)
    assert a.numel() == 0 or size[-1] < 17 or bool((torch.linalg.ldl_factor(a).pivots < 0).any())
    same(lambda a: torch.linalg.ldl_factor_ex(place(a), hermitian=hermitian), a)
    right = values(dtype, *size, 3)
    factors, pivots = torch.linalg.ldl_factor(a, hermitian=hermitian)
    same(
        lambda f, p, b: torch.linalg.ldl_solve(place(f), p, place(b), hermitian=hermitian),
        factors,
        pivots,
        right,
    )


def test_symmetric_factorization_reads_the_lower_triangle():
    a = symmetric(torch.float64, (6,), True)
    same(torch.linalg.ldl_factor_ex, a.tril() + torch.full_like(a, math.nan).triu(1).nan_to_num(7.0))


def test_symmetric_matrices_that_are_singular():
    a = symmetric(torch.complex128, (4, 7), False)
    a[1, 3], a[1, :, 3] = 0, 0
    a[2] = 0
    a[3, 5, 5] = math.nan
    same(lambda a: torch.linalg.ldl_factor_ex(a)[1:], a[:3])
    assert torch.linalg.ldl_factor_ex(a.cuda()).info.cpu()[3] > 0
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.ldl_factor_ex(a.cuda(), check_errors=True)


@pytest.mark.parametrize("pivots", [[1, 9, 3], [1, 2, -3], [0, 2, 3], [-1, 2, 3], [-2, -9, 3]])
def test_ldl_pivots_that_are_not_rows(pivots):
    with pytest.raises(RuntimeError, match="pivot"):
        torch.linalg.ldl_solve(
            torch.eye(3).cuda(), torch.tensor(pivots, dtype=torch.int32).cuda(), torch.ones(3, 2).cuda()
        )
        torch.cuda.synchronize()


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections_of_tiny_columns(dtype):
    tiny = 1e-310 if dtype in (torch.float64, torch.complex128) else 1e-40
    a = values(dtype, 6, 3) * torch.tensor([1, tiny, tiny], dtype=dtype)
    q, r = torch.linalg.qr(a.cuda())
    torch.testing.assert_close((q.mH @ q).cpu(), torch.eye(3, dtype=dtype), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close((q @ r).cpu(), a, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "shape", [(1, 1), (5, 3), (3, 5), (6, 6), (2, 20, 18), (2, 3, 40), (40, 6), (0, 3), (3, 0), (0, 2, 2)]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares(dtype, shape, layout):
    place = LAYOUTS[layout]
    a, right = values(dtype, *shape), values(dtype, *shape[:-1], 4)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        same(lambda a, b, d=driver: torch.linalg.lstsq(place(a), place(b), driver=d), a, right)
    if min(shape) < 3:
        return
    low = values(dtype, *shape[:-1], 2) @ values(dtype, *shape[:-2], 2, shape[-1])
    for driver in ("gelsy", "gelsd", "gelss"):
        same(lambda a, b, d=driver: torch.linalg.lstsq(place(a), place(b), 1e-3, driver=d), low, right)


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("rcond", [None, -1.0, 0.0, 0.25, 0.3, 0.7, 1.0])
def test_rank_of_least_squares(driver, rcond):
    a = torch.diag(torch.tensor([1.0, 0.5, 0.25, 0.1]))[:, [2, 0, 3, 1]]
    same(lambda a, b: torch.linalg.lstsq(a, b, rcond, driver=driver), a, torch.eye(4))
    if rcond is None:
        a[:, 0] = 0
        same(lambda a, b: torch.linalg.lstsq(a, b, driver=driver), a, torch.eye(4))


def test_least_squares_without_a_solution():
    b = torch.ones(2, 1)
    singular, broken = torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor([[1.0, math.nan], [0.0, 1.0]])
    for a, right, driver, text in [
        (singular, b, "gels", "full rank"),
        (broken, b, "gels", "not finite"),
        (broken, b, "gelsy", "not finite"),
        (torch.eye(2), b * math.inf, "gelsd", "not finite"),
    ]:
        with pytest.raises(torch.linalg.LinAlgError, match=text):
            torch.linalg.lstsq(a.cuda(), right.cuda(), driver=driver)
            torch.cuda.synchronize()


def test_pivots_that_are_not_rows():
    with pytest.raises(RuntimeError, match="pivot"):
        torch.lu_unpack(torch.eye(3).cuda(), torch.tensor([1, 4, 3], dtype=torch.int32).cuda())
        torch.cuda.synchronize()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize(
    "call",
    [
        torch.linalg.det,
        torch.linalg.inv,
        torch.linalg.cholesky,
        lambda a: torch.linalg.slogdet(a)[1],
        lambda a: torch.linalg.solve(a, a.mT @ a),
        lambda a: torch.linalg.qr(a)[0],
        lambda a: torch.linalg.lu(a)[2],
        lambda a: torch.linalg.lstsq(a, a.mT @ a)[0],
        lambda a: torch.linalg.lstsq(a[..., :3], a.mT @ a)[0],
        lambda a: torch.linalg.ldl_solve(
            *torch.linalg.ldl_factor(a.detach(), hermitian=True), a @ a, hermitian=True
        ),
    ],
    ids=["det", "inv", "cholesky", "slogdet", "solve", "qr", "lu", "lstsq", "lstsq tall", "ldl_solve"],
)
def test_gradients(call, dtype):
    seen = []
    for device in ("cpu", "cuda"):
        a = positive(dtype, (2, 6)).to(device).requires_grad_()
        y = call(a)
        (y.abs() * torch.arange(y.numel()).reshape(y.shape).to(device)).sum().backward()
        seen.append(a.grad.cpu())
    scale = float(seen[0].abs().max())
    torch.testing.assert_close(seen[1] / scale, seen[0] / scale, rtol=1e-9, atol=1e-9)
