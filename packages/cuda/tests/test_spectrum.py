"""Eigenvalues and singular values on the plug-in: the decompositions hold up to rounding, and agree with the CPU's."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import rushlight as torch

pytestmark = pytest.mark.usefixtures("driver")

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dense": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "every second": lambda x: torch.stack([x, x], -1)[..., 0],
}
# For the tests, one block decomposes matrices of up to 16 columns, and larger ones are decomposed by many launches.
SQUARES = [(1,), (2,), (5,), (16,), (23,), (2, 3, 4), (2, 19)]
SHAPES = [(1, 1), (4, 4), (9, 4), (4, 9), (2, 3, 6, 5), (40, 3), (3, 40), (20, 18), (2, 17, 21)]


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(*shape, dtype=dtype)


def wide(x: torch.Tensor) -> torch.Tensor:
    return x.cpu().to(torch.complex128)


def norm(x: torch.Tensor) -> torch.Tensor:
    return x.abs().square().sum((-2, -1)).sqrt()


def precision(a: torch.Tensor) -> float:
    return 10 * max(a.shape[-2:]) * torch.finfo(a.dtype).eps


def assert_small(x: torch.Tensor, bound: float) -> None:
    assert float(norm(x).max()) <= bound


def assert_orthonormal(x: torch.Tensor, bound: float) -> None:
    assert_small(x.mH @ x - torch.eye(x.shape[-1], dtype=x.dtype), bound)


def scaled(a: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return a matrix whose largest element is 1, and the factor."""
    factor = float(wide(a).abs().max()) or 1.0
    return wide(a) / factor, factor


def special(name: str, dtype: torch.dtype, n: int) -> torch.Tensor:
    a, ones = values(dtype, n, n), torch.ones(n - 1, dtype=dtype)
    double = dtype in (torch.float64, torch.complex128)
    powers = torch.tensor([10.0**-k for k in range(n)], dtype=dtype)
    return {
        "zeros": lambda: torch.zeros(n, n, dtype=dtype),
        "ones": lambda: torch.ones(n, n, dtype=dtype),
        "identity": lambda: torch.eye(n, dtype=dtype),
        "rank 1": lambda: a[:, :1] @ a[:1],
        "equal columns": lambda: torch.cat([a[:, : n // 2], a[:, : n - n // 2]], 1),
        "graded": lambda: a * powers.flip(0),
        "large": lambda: a * (1e300 if double else 1e30),
        "tiny": lambda: a * (1e-300 if double else 1e-33),
        "permutation": lambda: torch.roll(torch.eye(n, dtype=dtype), 1, 0),
        "nilpotent": lambda: torch.diag(ones, -1),
        "jordan": lambda: torch.eye(n, dtype=dtype) * 2 + torch.diag(ones, 1),
        "reflection": lambda: torch.eye(n, dtype=dtype) - torch.ones(n, n, dtype=dtype) * (2 / n),
    }[name]()


SPECIAL = [
    "zeros",
    "ones",
    "identity",
    "rank 1",
    "equal columns",
    "graded",
    "large",
    "tiny",
    "permutation",
    "nilpotent",
    "jordan",
    "reflection",
]


# --- Hermitian matrices -----------------------------------------------------------------------------


def check_eigh(a: torch.Tensor, uplo: str, place: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Check the decomposition of the Hermitian matrix whose triangle is that of `a`. The other triangle is not read."""
    triangle = a.tril() if uplo == "L" else a.triu()
    diagonal = torch.diag_embed(wide(a).diagonal(0, -2, -1).real)
    full, factor = scaled(wide(triangle) + wide(triangle).mH - torch.diag_embed(wide(a).diagonal(0, -2, -1)))
    full = full - torch.diag_embed(full.diagonal(0, -2, -1)) + diagonal / factor
    other = (torch.ones_like(a.real).triu(1) if uplo == "L" else torch.ones_like(a.real).tril(-1)) != 0
    given = place(a.masked_fill(other, math.nan).cuda())
    w, v = torch.linalg.eigh(given, uplo)
    assert w.device.type == v.device.type == "cuda"
    assert (w.dtype, v.dtype) == (a.real.dtype, a.dtype)
    assert torch.equal(torch.linalg.eigvalsh(given, uplo).cpu(), w.cpu())
    bound = precision(a)
    assert bool((w.cpu().diff() >= 0).all())
    assert_orthonormal(wide(v), bound)
    size = float(norm(full).max()) or 1.0
    assert_small(full @ wide(v) - wide(v) * (wide(w) / factor).unsqueeze(-2), bound * size)
    host = torch.linalg.eigvalsh(full)
    torch.testing.assert_close(wide(w).real / factor, host, rtol=0, atol=bound * size)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", SQUARES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_hermitian_matrices(dtype, size, layout):
    for uplo in "LU":
        check_eigh(values(dtype, *size, size[-1]), uplo, LAYOUTS[layout])


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("dtype", DTYPES)
def test_special_hermitian_matrices(dtype, name):
    check_eigh(special(name, dtype, 7), "L", LAYOUTS["dense"])


# --- Square matrices --------------------------------------------------------------------------------


def check_eig(a: torch.Tensor, place: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    given = place(a.cuda())
    w, v = torch.linalg.eig(given)
    assert w.device.type == v.device.type == "cuda"
    assert w.dtype == v.dtype == (1j * a[..., 0]).dtype
    full, factor = scaled(a)
    bound, size = precision(a), float(norm(full).max()) or 1.0
    assert_small(full @ wide(v) - wide(v) * (wide(w) / factor).unsqueeze(-2), bound * size)
    lengths = wide(v).abs().square().sum(-2).sqrt()
    torch.testing.assert_close(lengths, torch.ones_like(lengths), rtol=0, atol=bound)
    # The iteration for eigenvalues alone rotates fewer elements.
    traces = [wide(x).sum(-1) / factor for x in (w, torch.linalg.eigvals(given))]
    for trace in traces:
        torch.testing.assert_close(trace, full.diagonal(0, -2, -1).sum(-1), rtol=0, atol=bound * size)
    return wide(w) / factor


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [*SQUARES, (40,)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_square_matrices(dtype, size, layout):
    a = values(dtype, *size, size[-1])
    found = check_eig(a, LAYOUTS[layout])
    for w in (found, wide(torch.linalg.eigvals(a.cuda())) / scaled(a)[1]):
        host = torch.linalg.eigvals(scaled(a)[0])
        apart = (w.unsqueeze(-1) - host.unsqueeze(-2)).abs()
        bound = 100 * precision(a)
        assert float(apart.amin(-1).max()) <= bound
        assert float(apart.amin(-2).max()) <= bound


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("dtype", DTYPES)
def test_special_square_matrices(dtype, name):
    check_eig(special(name, dtype, 7), LAYOUTS["dense"])


def test_triangular_matrix_has_its_diagonal_as_eigenvalues():
    a = values(torch.float64, 9, 9).triu()
    w = torch.linalg.eigvals(a.cuda()).cpu()
    torch.testing.assert_close(w.real.sort().values, a.diagonal().sort().values, rtol=1e-13, atol=1e-13)


def test_real_eigenvalues_have_no_imaginary_parts():
    a = values(torch.float64, 12, 12)
    w, v = torch.linalg.eig((a + a.mT).cuda())
    assert not w.cpu().imag.any()
    assert not v.cpu().imag.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eigenvalues_far_apart(dtype):
    """Rounding errors of the large elements are larger than the small elements."""
    n = 60
    powers = torch.tensor([10.0 ** (-16 * k / n) for k in range(n)], dtype=dtype)
    a = values(dtype, n, n) * powers * powers.unsqueeze(-1)
    check_eig(a, LAYOUTS["dense"])
    check_eigh(a + a.mT, "L", LAYOUTS["dense"])
    q = torch.linalg.qr(values(dtype, n, n))[0]
    check_eigh((q * powers) @ q.mT, "L", LAYOUTS["dense"])


# --- Singular values --------------------------------------------------------------------------------


def check_svd(a: torch.Tensor, place: Callable[[torch.Tensor], torch.Tensor]) -> None:
    given, (full_size, factor) = place(a.cuda()), scaled(a)
    k, bound, size = min(a.shape[-2:]), precision(a), float(norm(full_size).max()) or 1.0
    for full in (False, True):
        u, s, vh = torch.linalg.svd(given, full_matrices=full)
        assert u.device.type == s.device.type == vh.device.type == "cuda"
        assert (u.dtype, s.dtype, vh.dtype) == (a.dtype, a.real.dtype, a.dtype)
        assert u.shape[-1] == (a.shape[-2] if full else k)
        assert vh.shape[-2] == (a.shape[-1] if full else k)
        assert bool((s.cpu().diff() <= 0).all() and (s.cpu() >= 0).all())
        assert_orthonormal(wide(u), bound)
        assert_orthonormal(wide(vh).mH, bound)
        made = (wide(u)[..., :k] * (wide(s) / factor).unsqueeze(-2)) @ wide(vh)[..., :k, :]
        assert_small(made - full_size, bound * size)
    assert torch.equal(torch.linalg.svdvals(given).cpu(), s.cpu())
    host = torch.linalg.svdvals(full_size)
    torch.testing.assert_close(wide(s).real / factor, host, rtol=0, atol=bound * size)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_values(dtype, shape, layout):
    check_svd(values(dtype, *shape), LAYOUTS[layout])


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_values_of_special_matrices(dtype, name):
    a = special(name, dtype, 7)
    check_svd(a, LAYOUTS["dense"])
    check_svd(torch.cat([a, a]), LAYOUTS["dense"])
    check_svd(a[:4], LAYOUTS["dense"])


def test_singular_values_far_apart():
    n = 24
    left, right = (torch.linalg.qr(values(torch.float64, 2, n, n)[i])[0] for i in range(2))
    s = torch.tensor([10.0 ** (-k) for k in range(n)], dtype=torch.float64)
    check_svd((left * s) @ right, LAYOUTS["dense"])
    # One-sided rotations find small singular values of scaled columns to high relative accuracy.
    graded = left * s.flip(0)
    found = torch.linalg.svdvals(graded.cuda()).cpu()
    torch.testing.assert_close(found, s, rtol=1e-13, atol=0)


def test_drivers():
    a = values(torch.float64, 4, 3)
    for call in (torch.linalg.svd, torch.linalg.svdvals):
        for driver in ("gesvd", "gesvdj", "gesvda"):
            found = call(a.cuda(), driver=driver)
            torch.testing.assert_close(
                found[1] if call is torch.linalg.svd else found, torch.linalg.svdvals(a).cuda()
            )
        with pytest.raises(RuntimeError, match=r"linalg.svd.*\(driver\): must be"):
            call(a.cuda(), driver="gesdd")


def test_composites_of_singular_values():
    a = values(torch.float64, 2, 5, 3)
    for call in (torch.linalg.pinv, torch.linalg.matrix_rank, torch.linalg.cond):
        torch.testing.assert_close(call(a.cuda()).cpu(), call(a), rtol=1e-10, atol=1e-10)


# --- All --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [torch.linalg.eigh, torch.linalg.eig, torch.linalg.svd])
def test_empty_matrices(call):
    shapes = [(0, 0), (0, 3, 3), (2, 0, 0)] + [(0, 3), (3, 0), (2, 3, 0)] * (call is torch.linalg.svd)
    for shape in shapes:
        for one, other in zip(call(torch.zeros(shape).cuda()), call(torch.zeros(shape)), strict=True):
            assert one.device.type == "cuda"
            assert torch.equal(one.cpu(), other)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(
    "call",
    [torch.linalg.eigh, torch.linalg.eigvalsh, torch.linalg.eig, torch.linalg.svd, torch.linalg.svdvals],
    ids=["eigh", "eigvalsh", "eig", "svd", "svdvals"],
)
def test_elements_that_are_not_finite(call, value):
    a = torch.eye(5, dtype=torch.float64).expand(3, 5, 5).clone()
    a[1, 3, 2] = value
    with pytest.raises(RuntimeError, match="not finite") as caught:
        call(a.cuda())
        torch.cuda.synchronize()
    assert call is torch.linalg.eig or isinstance(caught.value, torch.linalg.LinAlgError)
    call(torch.eye(2).cuda())
    torch.cuda.synchronize()  # the device stays usable


def weighted(x: torch.Tensor) -> torch.Tensor:
    """Return a sum that depends on every element, but not on the phase of a vector."""
    size = x.abs().square()
    return (size * torch.arange(1, x.numel() + 1).reshape(x.shape).to(x.device)).sum()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize(
    "call",
    [
        lambda a: [*torch.linalg.eigh(a + a.mH)],
        lambda a: [torch.linalg.eigvalsh(a + a.mH)],
        lambda a: [*torch.linalg.svd(a[..., :3], full_matrices=False)],
        lambda a: [*torch.linalg.svd(a[..., :3, :], full_matrices=False)],
        lambda a: [torch.linalg.svdvals(a)],
        torch.linalg.pinv,
    ],
    ids=["eigh", "eigvalsh", "svd tall", "svd wide", "svdvals", "pinv"],
)
def test_gradients(call, dtype):
    seen = []
    for device in ("cpu", "cuda"):
        a = values(dtype, 2, 5, 5).to(device).requires_grad_()
        sum(weighted(y) for y in call(a)).backward()
        seen.append(a.grad.cpu())
    scale = float(seen[0].abs().max())
    torch.testing.assert_close(seen[1] / scale, seen[0] / scale, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients_of_eig(dtype):
    """The order of eigenvalues differs between devices, so the sums do not depend on it."""
    seen = []
    for device in ("cpu", "cuda"):
        a = values(dtype, 2, 5, 5).to(device).requires_grad_()
        w, v = torch.linalg.eig(a)
        weights = torch.arange(1.0, 6).to(torch.float64).to(device).unsqueeze(-1)
        (w.abs().square() * (v.abs().square() * weights).sum(-2)).sum().backward()
        seen.append(a.grad.cpu())
    scale = float(seen[0].abs().max())
    torch.testing.assert_close(seen[1] / scale, seen[0] / scale, rtol=1e-9, atol=1e-9)
