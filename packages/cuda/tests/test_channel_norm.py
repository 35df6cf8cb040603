"""Batch norm and group norm with their gradients on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.nn import functional

pytestmark = pytest.mark.usefixtures("driver")

FLOATS = ["float16", "bfloat16", "float32", "float64"]
DIGITS = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12}
# In the last shape, several blocks share a row.
SHAPES = [(4, 6), (4, 6, 5), (3, 6, 4, 5), (2, 6, 2, 3, 4), (500, 6), (1, 6, 300), (3, 6, 50, 60)]


def example(dtype: str, *shape: int) -> torch.Tensor:
    x = (torch.arange(torch.Size(shape).numel()) * 7 % 23).reshape(shape)
    return ((x - 11) / 4).to(getattr(torch, dtype))


def compare(call, tensors: list[torch.Tensor | None], dtype: str) -> None:
    """Compare the results of `call` on both devices, the gradients of floating leaves, and the tensors that it writes."""
    found = []
    for device in ("cuda", "cpu"):
        leaves = [t if t is None else t.detach().to(device).requires_grad_() for t in tensors]
        y, *written = call(device, *leaves)
        (y * y.detach().square()).sum().backward()
        found.append([y.detach(), *(t.grad for t in leaves if t is not None), *written])
    for got, wanted in zip(*found, strict=True):
        assert got.device.type == "cuda"
        assert got.dtype == wanted.dtype
        torch.testing.assert_close(
            got.cpu(), wanted, rtol=DIGITS[dtype], atol=30 * DIGITS[dtype], equal_nan=True
        )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training, shape, dtype):
    x = (example("float64", *shape) + 5).to(getattr(torch, dtype))
    weight, bias = example(dtype, 6), example(dtype, 6).flip(0)
    for affine in ((weight, bias), (None, None)):
        for statistics in ("float32", dtype, None if training else dtype):

            def call(device, x, weight, bias):
                mean = var = None
                if statistics:  # noqa: B023
                    mean = example(statistics, 6).to(device)  # noqa: B023
                    var = (example(statistics, 6) + 4).to(device)  # noqa: B023
                y = functional.batch_norm(x, mean, var, weight, bias, training, 0.3, 1e-3)
                return (y, mean, var) if statistics else (y,)  # noqa: B023

            compare(call, [x, *affine], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(4, 6), (3, 6, 4, 5), (3, 6, 50, 60)])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("activation", [functional.relu, lambda x: functional.hardtanh(x, -0.83, 0.79)])
def test_gradients_through_an_activation(activation, training, shape, dtype):
    x, weight, bias = example(dtype, *shape), example(dtype, 6), example(dtype, 6).flip(0)

    def call(device, x, weight, bias):
        mean, var = example(dtype, 6).to(device), (example(dtype, 6) + 4).to(device)
        return (activation(functional.batch_norm(x, mean, var, weight, bias, training)),)

    compare(call, [x, weight, bias], dtype)


# In channels-last arrays a block has several channels: fewer than 32, a multiple of 32, and a last group that is not full.
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(3, 6, 4, 5), (3, 64, 5, 3), (2, 70, 40, 50), (2, 3, 2, 4, 5), (1, 2, 30, 20)]
)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_channels_last(training, shape, dtype):
    x = (example("float64", *shape) + 5).to(getattr(torch, dtype)).movedim(1, -1).contiguous().movedim(-1, 1)
    weight, bias = example(dtype, shape[1]), example(dtype, shape[1]).flip(0)

    def normalised(device, x, weight, bias):
        mean = example("float32", shape[1]).to(device)
        var = (example("float32", shape[1]) + 4).to(device)
        y = functional.batch_norm(x, mean, var, weight, bias, training, 0.3, 1e-3)
        assert y.stride() == x.stride()
        return (y, mean, var)

    compare(normalised, [x, weight, bias], dtype)

    def activated(device, x, weight, bias):
        return (normalised(device, x, weight, bias)[0].relu(),)

    compare(activated, [x, weight, bias], dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups, shape, dtype):
    if shape == (4, 6) and groups == 6:
        shape = (4, 6, 2)  # with one element, the gradient is a rounding error
    if shape == (500, 6) and groups == 6:
        shape = (500, 6, 2)
    x = (example("float64", *shape) + 5).to(getattr(torch, dtype))
    weight, bias = example(dtype, 6), example(dtype, 6).flip(0)
    for affine in ((weight, bias), (None, None)):
        compare(lambda device, x, w, b: (functional.group_norm(x, groups, w, b, 1e-3),), [x, *affine], dtype)


@pytest.mark.parametrize("training", [True, False])
def test_layouts(training):
    x = example("float32", 3, 4, 5, 6)
    for tensor in (
        x.movedim(1, -1).contiguous().movedim(-1, 1),
        x.transpose(2, 3),
        x[:, ::2],
        x[:1].expand(3, 4, 5, 6),
    ):
        channels = tensor.shape[1]
        wide = example("float32", 2 * channels)

        def call(device, x, weight):
            mean, var = ((wide + n).to(device)[::2] for n in (1, 5))  # noqa: B023
            if device == "cpu":
                mean, var = mean.contiguous(), var.contiguous()
            return functional.batch_norm(x, mean, var, weight, None, training), mean, var

        compare(call, [tensor, wide[::2]], "float32")
        compare(lambda device, x, w: (functional.group_norm(x, 2, w),), [tensor, wide[::2]], "float32")


def test_one_of_the_gradients():
    for wanted in range(3):
        found = []
        for device in ("cuda", "cpu"):
            tensors = [example("float32", *s).to(device) for s in ((4, 6, 5), (6,), (6,))]
            tensors[wanted].requires_grad_()
            x, w, b = tensors
            y = functional.batch_norm(x, None, None, w, b, True) + functional.group_norm(x, 2, w, b)
            (y * y.detach().square()).sum().backward()
            found.append(tensors[wanted].grad.cpu())
        torch.testing.assert_close(*found, rtol=2e-5, atol=1e-4)


def test_a_large_mean_costs_no_digits_of_statistics():
    x = torch.arange(3.0 * 2 * 5000).reshape(3, 2, 5000) % 7 + 1e6
    var = torch.ones(2, device="cuda")
    functional.batch_norm(x.cuda(), torch.zeros(2, device="cuda"), var, training=True, momentum=1.0)
    torch.testing.assert_close(var.cpu(), x.double().var((0, 2)).float(), rtol=1e-5, atol=0)


@pytest.mark.parametrize("shape", [(0, 6, 4), (3, 6, 0), (0, 6)])
def test_empty_inputs(shape):
    weight, bias = example("float32", 6), example("float32", 6)
    for call in (
        lambda device, x, w, b: (torch.batch_norm(x, w, b, None, None, True, 0.1, 1e-5),),
        lambda device, x, w, b: (torch.group_norm(x, 2, w, b),),
    ):
        compare(call, [torch.zeros(shape), weight, bias], "float32")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 6, 4, 5), (2, 70, 5, 3), (2, 6, 40, 50), (2, 4, 2, 4, 5)])
@pytest.mark.parametrize("per_group", [1, 2])
def test_group_norm_of_channels_last(per_group, shape, dtype):
    x = example(dtype, *shape).movedim(1, -1).contiguous().movedim(-1, 1)
    weight, bias = example(dtype, shape[1]), example(dtype, shape[1]).flip(0)
    for affine in ((weight, bias), (None, None)):
        compare(
            lambda device, x, w, b: (functional.group_norm(x, shape[1] // per_group, w, b, 1e-2),),
            [x, *affine],
            dtype,
        )


def batch_norm(x, weight, training):
    mean, var = torch.zeros(x.shape[1], device="cuda"), torch.ones(x.shape[1], device="cuda")
    return functional.batch_norm(x, mean, var, weight, None, training)


@pytest.mark.parametrize("shape", [(3, 6, 4, 5), (2, 4, 2, 4, 5)])
@pytest.mark.parametrize(
    "norm",
    [
        lambda x, w: batch_norm(x, w, True).relu(),
        lambda x, w: batch_norm(x, w, False).relu(),
        lambda x, w: functional.group_norm(x, 2, w),
    ],
)
def test_channels_last_is_not_copied(norm, shape, driver):
    """The number of launches is that of row-major arrays, so no array is copied to another format."""

    def launches(x):
        x = x.cuda().requires_grad_()
        weight = torch.ones(shape[1], device="cuda", requires_grad=True)
        before = driver.fake_cuda_launches()
        y = norm(x, weight)
        grad = torch.ones_like(y)
        y.backward(grad)
        assert x.grad.stride() == x.stride()
        return driver.fake_cuda_launches() - before

    x = example("float32", *shape)
    assert launches(x.movedim(1, -1).contiguous().movedim(-1, 1)) == launches(x)
