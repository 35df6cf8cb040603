"""Padding, interpolation and sampling at the positions of a grid on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.nn import functional

pytestmark = pytest.mark.usefixtures("driver")

FLOATS = ["float16", "bfloat16", "float32", "float64"]
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-6, "float64": 1e-12}


def example(dtype: str, *shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    kind = getattr(torch, dtype)
    x = (torch.arange(n) * 7919 % 23).reshape(shape)
    return ((x - 11) / 8).to(kind) if kind.is_floating_point or kind.is_complex else x.to(kind)


def with_gradients(call, dtype: str, *tensors: torch.Tensor, same: bool = False) -> None:
    """Compare results and gradients on both devices. With `same`, the results must be equal to the bit."""
    seen = []
    for device in ("cpu", "cuda"):
        given = [t.detach().clone().to(device).requires_grad_() for t in tensors]
        y = call(*given)
        assert y.device.type == device
        (y * example(dtype, *y.shape).to(device)).sum().backward()
        seen.append((y.detach().cpu(), *(t.grad.cpu() for t in given)))
    for i, (here, there) in enumerate(zip(*seen, strict=True)):
        tolerance = 0 if same and i == 0 else TOLERANCE[dtype]
        torch.testing.assert_close(
            there, here, rtol=tolerance, atol=tolerance * max(1.0, float(here.double().abs().max()))
        )


PADS = [((5,), (2, 3)), ((4, 5), (1, 0, 3, 2)), ((3, 4, 5), (2, 2, 1, 3, 0, 1))]


@pytest.mark.parametrize(("sizes", "amounts"), PADS)
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_padding_and_its_gradient(dtype, mode, sizes, amounts):
    x = example(dtype, 2, 3, *sizes)
    with_gradients(lambda t: functional.pad(t, amounts, mode=mode), dtype, x, same=True)
    with_gradients(lambda t: functional.pad(t.transpose(0, 1), amounts, mode=mode), dtype, x, same=True)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "complex64", "complex128"])
def test_padding_of_other_dtypes(dtype, mode):
    x = example(dtype, 2, 3, 5)
    assert functional.pad(x.cuda(), (4, 2), mode=mode).cpu().equal(functional.pad(x, (4, 2), mode=mode))
    if dtype.startswith("complex"):
        with_complex = []
        for device in ("cpu", "cuda"):
            t = x.clone().to(device).requires_grad_()
            functional.pad(t, (4, 2), mode=mode).abs().sum().backward()
            with_complex.append(t.grad.cpu())
        torch.testing.assert_close(with_complex[1], with_complex[0])


def test_the_widest_pads():
    x = example("float32", 1, 1, 4)
    with_gradients(lambda t: functional.pad(t, (3, 3), mode="reflect"), "float32", x, same=True)
    with_gradients(lambda t: functional.pad(t, (4, 4), mode="circular"), "float32", x, same=True)
    with_gradients(lambda t: functional.pad(t, (9, 0), mode="replicate"), "float32", x[..., :1], same=True)


RESIZED = [
    ("nearest", {}), ("nearest-exact", {}), ("bilinear", {}), ("bilinear", {"align_corners": True}), ("bicubic", {}),
    ("bicubic", {"align_corners": True}), ("bilinear", {"antialias": True}), ("bicubic", {"antialias": True}), ("area", {}),
]  # fmt: skip


@pytest.mark.parametrize("size", [(9, 4), (3, 14), (1, 1), (6, 7)])
@pytest.mark.parametrize(("mode", "options"), RESIZED)
@pytest.mark.parametrize("dtype", FLOATS)
def test_interpolation(dtype, mode, options, size):
    x = example(dtype, 2, 3, 6, 7)
    with_gradients(lambda t: functional.interpolate(t, size, mode=mode, **options), dtype, x)
    with_gradients(lambda t: functional.interpolate(t.transpose(2, 3), size, mode=mode, **options), dtype, x)


@pytest.mark.parametrize("scale", [0.6, 1.7])
@pytest.mark.parametrize(("mode", "dims"), [("nearest", 1), ("linear", 1), ("bilinear", 2), ("trilinear", 3)])
def test_interpolation_by_a_factor(mode, dims, scale):
    x = example("float32", 2, 3, 4, 5, 6)[(slice(None), slice(None), *[0] * (3 - dims))]
    for again in (None, False):
        with_gradients(
            lambda t, again=again: functional.interpolate(
                t, scale_factor=scale, mode=mode, recompute_scale_factor=again
            ),
            "float32",
            x,
        )


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_positions_of_a_grid(dtype, mode, padding, align_corners):
    options = {"mode": mode, "padding_mode": padding, "align_corners": align_corners}
    x, grid = example(dtype, 2, 3, 4, 5), example(dtype, 2, 6, 3, 2) * 1.3 + 0.07
    with_gradients(lambda t, g: functional.grid_sample(t, g, **options), dtype, x, grid)
    if mode != "bicubic":
        x, grid = example(dtype, 2, 2, 3, 4, 5), example(dtype, 2, 2, 3, 4, 3) * 0.9 - 0.03
        with_gradients(lambda t, g: functional.grid_sample(t, g, **options), dtype, x, grid)


def test_a_grid_that_is_not_finite():
    grid = torch.tensor([[[[float("nan"), 0.0], [float("inf"), 0.5], [1e30, -1e30]]]])
    x = example("float32", 1, 2, 3, 4)
    for padding in ("zeros", "border", "reflection"):
        host = functional.grid_sample(x, grid, padding_mode=padding, align_corners=False)
        device = functional.grid_sample(x.cuda(), grid.cuda(), padding_mode=padding, align_corners=False)
        torch.testing.assert_close(device.cpu(), host, equal_nan=True)
