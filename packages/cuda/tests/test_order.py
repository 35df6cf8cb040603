"""Scans, sorting, searches and counts on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.nn import functional

pytestmark = pytest.mark.usefixtures("driver")

INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
REAL = ["bool", *INTEGERS, *FLOATS]
SHAPES = [
    ((), 0),
    ((1,), 0),
    ((7,), 0),
    ((3, 40, 5), 1),
    ((3, 5, 40), -1),
    ((300, 2), 0),
    ((2, 1025), 1),
    ((2, 0), 0),
]


def example(dtype: str, *shape: int, special: bool = True) -> torch.Tensor:
    n = torch.Size(shape).numel()
    kind = getattr(torch, dtype)
    x = (torch.arange(n) * 7919 % 23 - (0 if dtype.startswith("u") else 11)).reshape(shape)
    if not (kind.is_floating_point or kind.is_complex):
        return x.to(kind)
    x = (x / 8).to(kind)
    if special and n > 20 and kind.is_floating_point:
        flat = x.reshape(-1)
        flat[3], flat[n // 2], flat[n // 2 + 1], flat[-2] = -0.0, float("nan"), float("inf"), float("-inf")
    return x


def same(device: torch.Tensor, host: torch.Tensor) -> None:
    assert device.device.type == "cuda"
    assert device.dtype == host.dtype
    torch.testing.assert_close(device.cpu(), host, rtol=0, atol=0, equal_nan=True)


def close(device: torch.Tensor, host: torch.Tensor) -> None:
    tolerance = {torch.float64: 1e-13, torch.float32: 1e-6, torch.complex64: 1e-6, torch.float16: 1e-3}.get(
        host.dtype, 1e-2
    )
    assert device.dtype == host.dtype
    torch.testing.assert_close(device.cpu(), host, rtol=tolerance, atol=tolerance, equal_nan=True)


def both(call, *tensors: torch.Tensor, check=same) -> None:
    found, wanted = call(*(t.cuda() for t in tensors)), call(*tensors)
    if isinstance(wanted, torch.Tensor):
        found, wanted = [found], [wanted]
    for here, there in zip(found, wanted, strict=True):
        check(here, there)


# --- scans ---


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("dtype", [*REAL, "complex64", "complex128"])
def test_running_sums_products_and_extremes(dtype, shape, dim):
    x = example(dtype, *shape)
    both(lambda t: t.cumsum(dim), x, check=close)
    both(lambda t: t.cumprod(dim), x, check=close)
    if dtype in REAL:
        both(lambda t: t.cummax(dim), x)
        both(lambda t: t.cummin(dim), x)
    if dtype not in ("bool", *INTEGERS):
        both(lambda t: t.logcumsumexp(dim), x, check=close)
    if len(shape) == 3:
        both(lambda t: t.transpose(0, 2).cumsum(dim), x, check=close)
        both(lambda t: t[:, ::2].cumsum(dim), x, check=close)
    if dtype in INTEGERS:
        both(lambda t: t.cumsum(dim, dtype=torch.int8), x)
        both(lambda t: t.cumsum(dim, dtype=torch.float32), x)
        both(lambda t: t.cumprod(dim, dtype=getattr(torch, dtype)), x)


@pytest.mark.parametrize("shape", [(40_000,), (2, 17_000), (33_000, 3)])
def test_long_lines_are_shared(shape):
    dim = max(range(len(shape)), key=lambda d: shape[d])
    x = torch.arange(torch.Size(shape).numel()).reshape(shape) * 31 % 1009
    both(lambda t: t.cumsum(dim), x)
    both(lambda t: t.cummax(dim), x)
    both(lambda t: (t / 64 - 4).logcumsumexp(dim), x, check=close)


def test_gradients_of_running_products():
    grads = []
    for device in ("cpu", "cuda"):
        x = torch.tensor([[1.5, 2.0, 0.0, 3.0, 0.5]]).to(device).requires_grad_()
        (x.cumprod(1) * torch.arange(5.0).to(device)).sum().backward()
        y = torch.tensor([0.5, -1.0, 2.0]).to(device).requires_grad_()
        y.logcumsumexp(0).sum().backward()
        grads.append((x.grad.cpu(), y.grad.cpu()))
    for here, there in zip(*grads, strict=True):
        torch.testing.assert_close(there, here)


# --- order ---


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("dtype", REAL)
def test_sorting_and_choosing(dtype, shape, dim):
    x = example(dtype, *shape)
    for descending in (False, True):
        both(lambda t, d=descending: t.sort(dim, descending=d), x)
        both(lambda t, d=descending: t.sort(dim, descending=d, stable=True), x)
    both(lambda t: t.argsort(dim), x)
    n = shape[dim] if shape else 1
    for k in {0, 1, n // 2, n}:
        both(lambda t, k=k: t.topk(k, dim), x)
        both(lambda t, k=k: t.topk(k, dim, largest=False), x)
        if k > 0 and dtype != "bool":
            both(lambda t, k=k: t.kthvalue(k, dim), x)
    if n > 0:
        both(lambda t: t.mode(dim), x)
        if dtype != "bool":
            both(lambda t: t.median(dim), x)
            both(lambda t: t.nanmedian(dim, keepdim=True), x)
    if x.numel() and dtype != "bool":
        both(lambda t: t.median(), x)
        both(lambda t: t.nanmedian(), x)
    if len(shape) == 3:
        both(lambda t: t.transpose(0, 2)[::2].sort(dim), x)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float64"])
def test_long_rows(dtype):
    x = example(dtype, 3, 5000, 2)
    both(lambda t: t.sort(1), x)
    both(lambda t: t.sort(1, descending=True), x)
    both(lambda t: t.topk(7, 1), x)
    both(lambda t: t.kthvalue(1234, 1), x)
    both(lambda t: t.mode(1), x)
    both(lambda t: t.flatten().sort(), x)


def test_medians_of_nothing_and_of_nan():
    both(lambda t: t.median(), torch.zeros(0))
    both(lambda t: t.nanmedian(), torch.full((3,), float("nan")))
    both(lambda t: t.mode(), torch.full((2, 3), float("nan")))


def test_gradients_of_sorted_elements():
    grads = []
    for device in ("cpu", "cuda"):
        x = example("float32", 4, 9, special=False).to(device).requires_grad_()
        (
            (x.sort(1).values * torch.arange(9.0).to(device)).sum()
            + x.topk(3, 0).values.sum()
            + x.median(1).values.sum()
        ).backward()
        grads.append(x.grad)
    same(grads[1], grads[0])


# --- searching ---


@pytest.mark.parametrize("dtype", REAL)
def test_positions_in_sorted_sequences(dtype):
    sequence, values = example(dtype, 3, 30).sort(1).values, example(dtype, 3, 8).flip(0)
    for right in (False, True):
        for narrow in (False, True):
            options = {"right": right, "out_int32": narrow}
            both(lambda s, v, o=options: torch.searchsorted(s, v, **o), sequence, values)
            both(lambda s, v, o=options: torch.searchsorted(s[1], v, **o), sequence, values)
            both(lambda s, v, o=options: torch.bucketize(v, s[0], **o), sequence, values)
    both(lambda s, v: torch.searchsorted(s[0][:0], v), sequence, values)
    both(lambda s, v: torch.searchsorted(s.t().contiguous().t(), v[:, ::2]), sequence, values)
    shuffled = sequence.flip(1)
    both(lambda s, v: torch.searchsorted(s, v, sorter=s.argsort(1, stable=True)), shuffled, values)
    if dtype != "bool":
        both(lambda s, v: torch.isin(v, s[0, ::3]), sequence, values)
        both(lambda s, v: torch.isin(v, s[0, ::3], invert=True), sequence, values)


def test_a_sorter_out_of_range():
    x = torch.arange(3.0).cuda()
    with pytest.raises(IndexError, match="range"):
        torch.searchsorted(x, x, sorter=torch.tensor([0, 1, 3]).cuda())
        torch.cuda.synchronize()


@pytest.mark.parametrize("shape", [(0,), (1,), (60,), (3, 0), (6, 5), (4, 3, 2), (2500,)])
@pytest.mark.parametrize("dtype", REAL)
def test_distinct_elements(dtype, shape):
    x = example(dtype, *shape)
    options = {"return_inverse": True, "return_counts": True}
    both(lambda t: torch.unique(t, **options), x)
    both(lambda t: torch.unique(t), x)
    both(lambda t: torch.unique_consecutive(t, **options), x)
    rows = x.reshape(shape[0], -1)[torch.arange(2 * shape[0]) % shape[0]] if 0 < x.numel() < 100 else x
    if rows.numel() or rows.ndim == 1:
        both(lambda t: torch.unique(t, dim=0, **options), rows)
        both(lambda t: torch.unique_consecutive(t, dim=0, **options), rows)
    if rows.ndim == 2 and 0 < rows.numel() < 500:
        both(lambda t: torch.unique(t, dim=1, **options), rows)


def test_repeated_slices():
    x, repeats = torch.arange(12).reshape(4, 3), torch.tensor([2, 0, 3, 1])
    both(lambda t, r: t.repeat_interleave(r, dim=0), x, repeats)
    both(lambda t, r: t.repeat_interleave(r[:1], dim=1), x, repeats)
    both(lambda t, r: t.repeat_interleave(2), x, repeats)
    both(lambda t, r: torch.repeat_interleave(r), x, repeats)
    both(lambda t, r: t[:0].repeat_interleave(r[:0], dim=0), x, repeats)
    with pytest.raises(RuntimeError, match="negative"):
        x.cuda().repeat_interleave(torch.tensor([1, -1, 1, 1]).cuda(), dim=0)


# --- counting ---


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_counts_of_numbers(dtype):
    x = (torch.arange(700) * 31 % 17).to(getattr(torch, dtype))
    weights = torch.arange(700.0) / 7
    both(lambda t, w: torch.bincount(t), x, weights)
    both(lambda t, w: torch.bincount(t, minlength=40), x, weights)
    both(lambda t, w: torch.bincount(t, w), x, weights)
    both(lambda t, w: torch.bincount(t, w.double()), x, weights)
    both(lambda t, w: torch.bincount(t[:0], minlength=3), x, weights)
    both(lambda t, w: torch.bincount(t[:0]), x, weights)


def test_negative_numbers_are_not_counted():
    for bad in (-1, -(2**63)):
        with pytest.raises(RuntimeError, match="negative"):
            torch.bincount(torch.tensor([0, bad, 3]).cuda())


@pytest.mark.parametrize("dtype", FLOATS)
def test_histograms(dtype):
    x = example(dtype, 30, 40, special=False)
    both(lambda t: torch.histc(t, 7), x)
    both(lambda t: torch.histc(t, 5, -1, 0.5), x)
    both(lambda t: torch.histc(t, 5, 1, 1), x)
    both(lambda t: torch.histc(t[:0], 5), x)
    both(lambda t: torch.histc(t * 0, 3), x)
    if dtype in ("float32", "float64"):
        weight = x.abs() + 0.25
        both(lambda t, w: torch.histogram(t, 8, range=(-1.0, 1.0)), x, weight)
        both(
            lambda t, w: torch.histogram(t, 8, range=(-1.0, 1.0), weight=w, density=True),
            x,
            weight,
            check=close,
        )
        edges = torch.tensor([-1.0, -0.5, 0.25, 1.5], dtype=x.dtype)
        both(lambda t, w, e: torch.histogram(t, e, weight=w), x, weight, edges)


def test_a_histogram_of_what_is_not_finite():
    with pytest.raises(RuntimeError, match="not finite"):
        torch.histc(torch.tensor([1.0, float("nan")]).cuda(), 3)
        torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="larger than max"):
        torch.histc(torch.tensor([1.0]).cuda(), 3, 2, 1)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_with_their_gradients(mode):
    seen = []
    for device in ("cpu", "cuda"):
        table = example("float32", 6, 5, special=False).to(device).requires_grad_()
        index, offsets = torch.tensor([1, 2, 2, 5, 1, 2, 1]).to(device), torch.tensor([0, 3, 3, 4]).to(device)
        y = functional.embedding_bag(index, table, offsets, mode=mode, padding_idx=2)
        (y * torch.arange(20.0).reshape(4, 5).to(device)).sum().backward()
        seen.append((y.detach().cpu(), table.grad.cpu()))
    for here, there in zip(*seen, strict=True):
        torch.testing.assert_close(there, here)
