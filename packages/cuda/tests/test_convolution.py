"""Convolutions on the plug-in, by cuDNN and by the plug-in's own kernels, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.nn import functional

pytestmark = pytest.mark.usefixtures("driver")


@pytest.fixture(autouse=True, params=[True, False], ids=["cudnn", "own"])
def by_cudnn(request):
    with torch.backends.cudnn.flags(enabled=request.param):
        yield


TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12}
CASES = {
    "1d": ((2, 3, 11), (4, 3, 3), {"padding": 1}),
    "2d": ((2, 3, 7, 6), (5, 3, 3, 2), {}),
    "strided": ((3, 4, 9, 8), (6, 4, 3, 3), {"stride": (2, 3), "padding": (1, 0)}),
    "dilated": ((2, 2, 9, 9), (3, 2, 3, 2), {"dilation": (2, 3), "padding": 2}),
    "pointwise": ((3, 6, 4, 5), (4, 6, 1, 1), {}),
    "pointwise, strided": ((2, 6, 5, 5), (4, 6, 1, 1), {"stride": 2}),
    "groups": ((2, 6, 5, 4), (4, 3, 2, 2), {"groups": 2}),
    "more groups than samples": ((1, 8, 5, 5), (8, 2, 3, 3), {"groups": 4, "padding": 1}),
    "depthwise": ((2, 4, 6, 5), (8, 1, 3, 3), {"groups": 4, "padding": 1}),
    "depthwise, strided": (
        (2, 4, 7, 7),
        (4, 1, 3, 3),
        {"groups": 4, "stride": 2, "padding": 1, "dilation": 2},
    ),
    "3d": ((2, 2, 4, 5, 3), (3, 2, 2, 3, 2), {"padding": (1, 0, 1)}),
    "one channel": ((2, 1, 5, 5), (3, 1, 3, 3), {}),
}


def values(dtype: str, *shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    return ((torch.arange(n) * 7 % 23 - 11) / 8).reshape(shape).to(getattr(torch, dtype))


def close(device: torch.Tensor, host: torch.Tensor, dtype: str) -> None:
    assert device.device.type == "cuda"
    assert device.dtype == host.dtype
    scale = max(1.0, float(host.double().abs().max())) if host.numel() else 1.0
    torch.testing.assert_close(device.cpu(), host, rtol=0, atol=TOLERANCE[dtype] * scale)


def compare(function, tensors, dtype: str) -> None:
    """Compare the result and all gradients on both devices."""
    here = [t.clone().requires_grad_() for t in tensors]
    there = [t.cuda().requires_grad_() for t in tensors]
    expected, found = function(*here), function(*there)
    close(found.detach(), expected.detach(), dtype)
    grad = values(dtype, *expected.shape)
    expected.backward(grad)
    found.backward(grad.cuda())
    for one, other in zip(there, here, strict=True):
        close(one.grad, other.grad, dtype)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_convolutions_and_their_gradients(case, dtype, bias):
    shape, kernel, options = CASES[case]
    convolve = getattr(functional, f"conv{len(shape) - 2}d")
    tensors = [values(dtype, *shape), values(dtype, *kernel)]
    if bias:
        tensors.append(values(dtype, kernel[0]))
    compare(lambda *given: convolve(*given, **options), tensors, dtype)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    ("shape", "kernel", "options"),
    [
        ((2, 3, 5), (3, 4, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
        ((2, 4, 4, 3), (4, 2, 3, 3), {"stride": (2, 1), "dilation": 2}),
        ((2, 4, 4, 3), (4, 3, 3, 2), {"groups": 2}),
        ((2, 4, 5, 5), (4, 1, 3, 3), {"groups": 4, "stride": 2}),
        ((1, 4, 3, 3), (4, 5, 1, 1), {}),
        ((1, 2, 3, 3, 2), (2, 3, 2, 2, 2), {"stride": 2}),
    ],
)
def test_transposed_convolutions(shape, kernel, options, dtype, bias):
    convolve = getattr(functional, f"conv_transpose{len(shape) - 2}d")
    tensors = [values(dtype, *shape), values(dtype, *kernel)]
    if bias:
        tensors.append(values(dtype, kernel[1] * options.get("groups", 1)))
    compare(lambda *given: convolve(*given, **options), tensors, dtype)


@pytest.mark.parametrize("layout", ["channels last", "every second", "broadcast"])
def test_layouts(layout):
    x, w = values("float32", 2, 4, 6, 6), values("float32", 4, 4, 3, 3)
    with_layout = {
        "channels last": lambda t: t.to(memory_format=torch.channels_last),
        "every second": lambda t: t[:, ::2],
        "broadcast": lambda t: t[:1].expand(2, 4, *t.shape[2:]),
    }[layout]
    found = functional.conv2d(with_layout(x.cuda()), with_layout(w.cuda()), padding=2)
    close(found, functional.conv2d(with_layout(x), with_layout(w), padding=2), "float32")


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("channels", "each", "options"),
    [
        (4, 1, {"padding": 1}),
        (4, 2, {"stride": 2}),
        (70, 1, {"padding": 1, "dilation": 2}),
        (32, 3, {"stride": (1, 2), "padding": (0, 1)}),
    ],
)
def test_depthwise_convolutions_of_channels_last(channels, each, options, transposed, dtype, bias, driver):
    """They give channels-last results, in as many launches as row-major arrays need: no array is copied."""
    convolve = functional.conv_transpose2d if transposed else functional.conv2d
    kernel = (channels, 1 if transposed else each, 3, 3)
    if not transposed:
        kernel = (channels * each, 1, 3, 3)

    def call(x, *given):
        return convolve(x, *given, groups=channels, **options)

    x = values(dtype, 2, channels, 7, 6)
    tensors = [x, values(dtype, *kernel)]
    if bias:
        tensors.append(values(dtype, channels if transposed else channels * each))
    last = x.to(memory_format=torch.channels_last)
    compare(call, [last, *tensors[1:]], dtype)

    counts = []
    for given in (x, last):
        leaves = [t.cuda().requires_grad_() for t in (given, *tensors[1:])]
        before = driver.fake_cuda_launches()
        y = call(*leaves)
        counts.append(driver.fake_cuda_launches() - before)
        assert y.is_contiguous(memory_format=torch.channels_last) == (given is last)
        grad = torch.ones_like(y)
        before = driver.fake_cuda_launches()
        y.backward(grad)
        counts.append(driver.fake_cuda_launches() - before)
        assert leaves[0].grad.stride() == given.stride()
    assert counts[0] == counts[2] == 1
    assert counts[3] - counts[1] == int(
        bias
    )  # the sum over the rows of a channels-last gradient has two steps


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_integers_wrap_around(dtype):
    kind = getattr(torch, dtype)
    x, w, b = (torch.arange(n).to(kind) for n in (2 * 2 * 5 * 5, 3 * 2 * 2 * 2, 3))
    given = (x.reshape(2, 2, 5, 5), w.reshape(3, 2, 2, 2), b)
    arguments = ([2, 1], [1, 0], [1, 2], False, [0, 0], 1)
    found = torch.convolution(*(t.cuda() for t in given), *arguments)
    assert found.cpu().equal(torch.convolution(*given, *arguments))
    arguments = ([2, 1], [1, 0], [1, 2], True, [1, 0], 1)
    given = (x.reshape(2, 2, 5, 5), w.reshape(2, 3, 2, 2), b)
    found = torch.convolution(*(t.cuda() for t in given), *arguments)
    assert found.cpu().equal(torch.convolution(*given, *arguments))


@pytest.mark.parametrize("bias", [False, True])
def test_transposed_convolution_without_input_channels(bias):
    given = torch.zeros(1, 0, 4, 4), torch.zeros(0, 3, 2, 2), values("float32", 3) if bias else None
    found = functional.conv_transpose2d(*(None if t is None else t.cuda() for t in given))
    assert found.cpu().equal(functional.conv_transpose2d(*given))


@pytest.mark.parametrize("kernel", [(1, 1), (3, 2)])
@pytest.mark.parametrize("bias", [False, True])
def test_convolution_without_input_channels(bias, kernel):
    given = torch.zeros(2, 0, 4, 4), torch.zeros(3, 0, *kernel), values("float32", 3) if bias else None
    found = functional.conv2d(*(None if t is None else t.cuda() for t in given)).cpu()
    assert found.equal((given[2] if bias else torch.zeros(3))[:, None, None].expand(found.shape))


@pytest.mark.parametrize(
    ("convolve", "shape", "kernel", "options"),
    [
        (functional.conv2d, (2, 0, 4, 4), (3, 0, 2, 2), {}),
        (functional.conv1d, (2, 4, 0), (3, 4, 2), {"padding": 2}),
        (functional.conv_transpose2d, (2, 0, 4, 4), (0, 3, 2, 2), {}),
        (functional.conv2d, (0, 2, 4, 4), (3, 2, 2, 2), {}),
    ],
)
def test_the_gradient_of_the_bias_without_input(convolve, shape, kernel, options):
    x, w, b = (torch.ones(s, device="cuda", requires_grad=True) for s in (shape, kernel, (3,)))
    y = convolve(x, w, b, **options)
    grad = values("float32", *y.shape)
    y.backward(grad.cuda())
    assert b.grad.cpu().equal(grad.sum([0, *range(2, grad.ndim)]))
    assert float(w.grad.abs().sum()) == 0.0
    assert x.grad.shape == shape


@pytest.mark.parametrize("shape", [(0, 3, 5, 5), (2, 3, 5, 5)])
def test_nothing(shape):
    x = torch.zeros(shape, device="cuda", requires_grad=True)
    w = torch.ones(4, 3, 2, 2, device="cuda", requires_grad=True)
    y = functional.conv2d(x, w)
    y.sum().backward()
    assert y.shape == (shape[0], 4, 4, 4)
    assert float(w.grad.abs().sum()) == 0.0
    assert x.grad.shape == shape
