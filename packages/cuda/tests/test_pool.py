"""Pooling and its gradients on the plug-in, compared with the CPU."""

from __future__ import annotations

import math

import pytest

import rushlight as torch

pytestmark = pytest.mark.usefixtures("driver")

INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
LAYOUTS = {
    "dense": lambda x: x,
    "channels last": lambda x: x.movedim(1, -1).contiguous().movedim(-1, 1),
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "broadcast": lambda x: x[:1].expand(x.shape),
}


def example(dtype: str, *shape: int) -> torch.Tensor:
    x = (torch.arange(torch.Size(shape).numel()) * 7 % 23).reshape(shape)
    return x.to(getattr(torch, dtype)) if dtype in INTEGERS else ((x - 11) / 4).to(getattr(torch, dtype))


def same(device: torch.Tensor, host: torch.Tensor, tolerance: float = 0) -> None:
    assert device.device.type == "cuda"
    assert device.dtype == host.dtype
    torch.testing.assert_close(device.cpu(), host, rtol=tolerance, atol=tolerance, equal_nan=True)


def compare(call, x: torch.Tensor, tolerance: float = 0) -> None:
    """Compare the results of a call on both devices and, for a floating-point input, its gradients, with a tolerance."""
    results, gradients = [], []
    for device in ("cuda", "cpu"):
        leaf = x.to(device)
        if x.is_floating_point():
            leaf = leaf.detach().requires_grad_()
        made = call(leaf)
        made = made if isinstance(made, tuple) else (made,)
        results.append([t.detach() for t in made])
        if x.is_floating_point():
            factor = example("float64", *made[0].shape).to(x.dtype).to(device)
            (made[0] * factor).sum().backward()
            gradients.append(leaf.grad)
    for got, wanted in zip(*results, strict=True):
        same(got, wanted)
    if gradients:
        same(*gradients, tolerance)


WINDOWS = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 2, "stride": 4, "ceil_mode": True},
]


def windows_of(dims: int) -> list[dict]:
    kernel, stride, padding = (2, 3, 1)[:dims], (1, 2, 3)[:dims], (1, 0, 0)[:dims]
    return [*WINDOWS, {"kernel_size": kernel, "stride": stride, "padding": padding}]


def shape_of(dims: int) -> tuple[int, ...]:
    return (2, 3, 5, 6, 7)[: 2 + dims]


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_maxima_of_every_dtype_and_window(dtype, dims):
    pool = getattr(torch, f"max_pool{dims}d")
    with_indices = getattr(torch, f"max_pool{dims}d_with_indices")
    x = example(dtype, *shape_of(dims))
    for options in [*windows_of(dims), {"kernel_size": 2, "stride": 1, "dilation": 2}]:
        compare(lambda t: pool(t, **options), x)  # noqa: B023
        compare(lambda t: with_indices(t, **options), x)  # noqa: B023
        compare(lambda t: pool(t, **options), x[0])  # noqa: B023


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("dtype", [*FLOATS, "int64"])
def test_means_of_every_dtype_and_window(dtype, dims):
    pool = getattr(torch, f"avg_pool{dims}d")
    x = example(dtype, *shape_of(dims))
    for options in windows_of(dims):
        for more in ({}, {"count_include_pad": False}, {"divisor_override": 3}, {"divisor_override": -1}):
            compare(lambda t: pool(t, **options, **more), x)  # noqa: B023
        compare(lambda t: pool(t, **options), x[0])  # noqa: B023


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("dtype", FLOATS)
def test_adaptive_pools(dtype, dims):
    mean, largest = (getattr(torch, f"adaptive_{kind}_pool{dims}d") for kind in ("avg", "max"))
    x = example(dtype, *shape_of(dims))
    for size in ((1,) * dims, (2,) * dims, (3, 4, 9)[:dims], (7, 1, 2)[:dims]):
        compare(lambda t: mean(t, size), x)  # noqa: B023
        compare(lambda t: largest(t, size), x)  # noqa: B023


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dims", [2, 3])
def test_layouts(dims, layout):
    x = LAYOUTS[layout](example("float32", *shape_of(dims)))
    for pool in (f"max_pool{dims}d", f"avg_pool{dims}d"):
        # On the CPU, the gradients of the layout channels last are sums in another order.
        compare(lambda t: getattr(torch, pool)(t, 3, 2, 1), x, 1e-6)  # noqa: B023
    for pool in (f"adaptive_max_pool{dims}d", f"adaptive_avg_pool{dims}d"):
        compare(lambda t: getattr(torch, pool)(t, (3,) * dims), x)  # noqa: B023


def test_nan_and_infinity():
    x = torch.zeros(1, 1, 6, 6)
    x[0, 0, 1, 2] = x[0, 0, 2, 1] = x[0, 0, 4, 4] = math.nan
    for values in (x, torch.full((1, 1, 6, 6), -math.inf)):
        compare(lambda t: torch.max_pool2d_with_indices(t, 3, 1, 1), values)
        compare(lambda t: torch.adaptive_max_pool2d(t, (2, 2)), values)
        compare(lambda t: torch.avg_pool2d(t, 3, 1, 1), values)


def test_a_window_with_no_element_inside():
    for dtype in ("float32", "float64", "int32"):
        x = example(dtype, 1, 8, 8)
        for got, wanted in zip(
            torch.max_pool2d_with_indices(x.cuda(), 2, 1, 1, 9),
            torch.max_pool2d_with_indices(x, 2, 1, 1, 9),
            strict=True,
        ):
            same(got, wanted)
    compare(lambda t: torch.max_pool2d(t, 2, 1, 1, 9), example("float32", 1, 8, 8))


def test_empty_inputs():
    for dims in (2, 3):
        nothing = torch.zeros(0, 3, 4, 4, 4)[..., 0] if dims == 2 else torch.zeros(0, 3, 4, 4, 4)
        for pool in (f"max_pool{dims}d", f"avg_pool{dims}d", f"adaptive_avg_pool{dims}d"):
            compare(lambda t: getattr(torch, pool)(t, 2), nothing)  # noqa: B023
    same(torch.adaptive_avg_pool2d(torch.zeros(2, 3, 0, 6).cuda(), 1), torch.full((2, 3, 1, 1), math.nan))
    compare(lambda t: torch.adaptive_avg_pool2d(t, (0, 2)), torch.ones(2, 3, 4, 5))


def test_planes_larger_than_a_block():
    x = example("float32", 1, 2, 45, 50)
    compare(lambda t: torch.max_pool2d(t, 3, 1, 1), x)
    compare(lambda t: torch.max_pool2d(t, 3, 1, 1), torch.zeros(1, 2, 45, 50))
    compare(lambda t: torch.avg_pool2d(t, 5, 2, 2), x)
    same(torch.adaptive_avg_pool2d(x.cuda(), 1), torch.adaptive_avg_pool2d(x, 1), 1e-6)


def test_many_windows_with_one_maximum():
    x = torch.zeros(1, 40, 40)
    x[0, 20, 20] = 1
    compare(lambda t: torch.max_pool2d(t, 39, 1, 19), x)


def test_an_index_out_of_range_is_found():
    x = torch.zeros(1, 8, 8, device="cuda", requires_grad=True)
    values, indices = torch.max_pool2d_with_indices(x, 2)
    indices.data.fill_(64)
    values.sum().backward()
    with pytest.raises(IndexError):
        torch.cuda.synchronize()


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1),
        lambda x: torch.nn.functional.avg_pool2d(x, 3, 2, 1),
        lambda x: torch.nn.functional.adaptive_avg_pool2d(x, (2, 3)),
        lambda x: torch.nn.functional.adaptive_avg_pool2d(x, 1),
        lambda x: torch.nn.functional.adaptive_max_pool2d(x, 2),
    ],
)
def test_channels_last_is_not_copied(pool, driver):
    """One launch computes the result, so neither the input nor the result is copied to another format."""
    x = LAYOUTS["channels last"](example("float32", 2, 3, 6, 7)).cuda()
    before = driver.fake_cuda_launches()
    y = pool(x)
    assert driver.fake_cuda_launches() - before == 1
    assert y.is_contiguous(memory_format=torch.channels_last)
    same(y, pool(x.cpu()))


@pytest.mark.parametrize("size", [1, 2])
def test_gradients_of_means_of_channels_last_are_not_copied(size, driver):
    x = LAYOUTS["channels last"](example("float32", 2, 3, 6, 7))
    for made in (torch.nn.functional.avg_pool2d, torch.nn.functional.adaptive_avg_pool2d):
        leaf = x.cuda().requires_grad_()
        y = made(leaf, size)
        grad = torch.ones_like(y)
        before = driver.fake_cuda_launches()
        y.backward(grad)
        assert driver.fake_cuda_launches() - before == 1
        assert leaf.grad.stride() == leaf.stride()
