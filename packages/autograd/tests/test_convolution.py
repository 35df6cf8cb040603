"""Gradients of convolutions in all layouts."""

from __future__ import annotations

import pytest

import rushlight_autograd as autograd
import rushlight_core as core


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2), (5, 1)])
@pytest.mark.parametrize("memory_format", ["contiguous", "channels_last"])
def test_gradients_of_biases_are_sums_without_lost_digits(
    groups: int, kernel: int, stride: int, memory_format: str
) -> None:
    """A sum of many equal numbers in single precision, one after another, would lose three digits."""
    side = 150
    x = core.zeros(4, 8, side, side).contiguous(memory_format=memory_format)
    weight = core.zeros(8, 8 // groups, kernel, kernel).contiguous(memory_format=memory_format)
    bias = core.zeros(8, requires_grad=True)
    y = core.conv2d(x, weight.requires_grad_(), bias, stride, 0, 1, groups)
    gradient = core.full(y.shape, 0.7).contiguous(memory_format=memory_format)
    _, sums = autograd.grad(y, [weight, bias], gradient)
    wanted = float(core.tensor(0.7)) * y.numel() / 8
    assert abs(sums.double() / wanted - 1).max() < 2e-6


@pytest.mark.parametrize("channels", [2, 16])
def test_depthwise_windows_in_the_padding_of_the_depth_are_zero(channels: int) -> None:
    x = core.ones(1, channels, 1, 5, 5, requires_grad=True)
    w = core.ones(channels, 1, 1, 3, 3, requires_grad=True)
    y = core.conv3d(x, w, None, (3, 1, 1), 1, 1, channels)  # the only plane of the result reads plane -1
    assert y.shape == (1, channels, 1, 5, 5)
    assert not y.any()
    assert not any(g.any() for g in autograd.grad(y.sum(), (x, w)))


@pytest.mark.parametrize("channels", [3, 16])
def test_strides_beyond_the_input_do_not_matter(channels: int) -> None:
    x, w = (
        core.randn(2, channels, 8, 9, requires_grad=True),
        core.randn(channels, 1, 3, 3, requires_grad=True),
    )
    results = []
    for stride in (20, 1 << 30):
        y = core.conv2d(x, w, None, stride, 1, 1, channels)
        results.append([y, *autograd.grad(y.sum(), (x, w))])
    assert all(core.equal(a, b) for a, b in zip(*results, strict=True))


def test_weight_gradients_of_many_images_with_large_filters() -> None:
    """The gradients of the items exceed the memory for them, so they are added up after some images."""
    x, w = core.randn(64, 16, 12, 12), core.randn(16, 1, 41, 41, requires_grad=True)
    g = core.randn(64, 16, 12, 12)
    (found,) = autograd.grad(core.conv2d(x, w, None, 1, 20, 1, 16), w, g)
    wanted = sum(
        autograd.grad(core.conv2d(x[n : n + 8], w, None, 1, 20, 1, 16), w, g[n : n + 8])[0]
        for n in range(0, 64, 8)
    )
    assert core.allclose(found, wanted, 1e-4, 1e-3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("channels", [1, 3, 16])
def test_weight_gradients_of_taps_that_never_read_a_bad_element_are_finite(channels: int, bad: float) -> None:
    x, w = core.ones(1, channels, 5, 4), core.ones(channels, 1, 3, 3, requires_grad=True)
    x[0, channels - 1, 4, 3] = bad
    (found,) = autograd.grad(core.conv2d(x, w, groups=channels).sum(), w)
    assert found[:-1].eq(6).all()
    assert found[-1].flatten().isfinite().tolist() == [True] * 8 + [False]
    (found,) = autograd.grad(core.conv2d(core.ones_like(x), w, None, 1, 1, 1, channels), w, x)  # with padding
    assert found[:-1].isfinite().all()
    assert found[-1, 0].isfinite().tolist() == [
        [False, False, True],
        [False, False, True],
        [True, True, True],
    ]


@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.bfloat16])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("size", [1, 2])
def test_gradients_without_input_channels(dtype, transposed, size):
    """The output is the bias, so the gradient of the bias counts the positions of the output."""
    x = core.ones(2, 0, 5, 5, dtype=dtype, requires_grad=True)
    shape = (0, 3, size, size) if transposed else (3, 0, size, size)
    weight = core.ones(shape, dtype=dtype, requires_grad=True)
    bias = core.ones(3, dtype=dtype, requires_grad=True)
    out = (core.conv_transpose2d if transposed else core.conv2d)(x, weight, bias)
    out.sum().backward()
    assert bias.grad.tolist() == [out.numel() / 3] * 3
    assert (x.grad.shape, weight.grad.shape) == (x.shape, weight.shape)
