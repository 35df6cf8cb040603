"""Selection of nonzero elements and of elements by a mask on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch

pytestmark = pytest.mark.usefixtures("driver")

DTYPES = ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
SHAPES = [(), (0,), (1,), (7,), (2048,), (2049,), (3, 0), (3, 5, 4), (70, 90), (2,) * 9]


def example(dtype: str, *shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    return (torch.arange(n) * 7 % 5 - 2).reshape(shape).to(getattr(torch, dtype))


def same(device: torch.Tensor, host: torch.Tensor) -> None:
    assert device.device.type == "cuda"
    assert device.dtype == host.dtype
    torch.testing.assert_close(device.cpu(), host, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_where_elements_are_not_zero(dtype, shape):
    x = example(dtype, *shape)
    same(x.cuda().nonzero(), x.nonzero())
    for size in (0, 3, 5000):
        same(torch.nonzero_static(x.cuda(), size=size), torch.nonzero_static(x, size=size))
        same(
            torch.nonzero_static(x.cuda(), size=size, fill_value=9),
            torch.nonzero_static(x, size=size, fill_value=9),
        )
    if x.ndim == 3:
        same(x.cuda().transpose(0, 2).nonzero(), x.transpose(0, 2).nonzero())
        same(x.cuda()[:, ::2].nonzero(), x[:, ::2].nonzero())
    if x.ndim:
        for here, there in zip(torch.where(x.cuda()), torch.where(x), strict=True):
            same(here, there)


def test_signed_zeros_and_nan():
    x = torch.tensor([0.0, -0.0, float("nan"), float("-inf"), 1e-45])
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        same(x.to(dtype).cuda().nonzero(), x.to(dtype).nonzero())
    z = torch.complex(torch.tensor([0.0, -0.0, 0.0, 1.0]), torch.tensor([-0.0, 0.0, 2.0, 0.0]))
    same(z.cuda().nonzero(), torch.tensor([[2], [3]]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_that_a_mask_chooses(dtype, shape):
    x = example(dtype, *shape)
    mask = (torch.arange(x.numel()) * 11 % 3 == 0).reshape(shape)
    same(x.cuda().masked_select(mask.cuda()), x.masked_select(mask))
    if x.ndim:
        same(x.cuda()[mask.cuda()], x[mask])
    source = example(dtype, x.numel() + 3)
    same(x.cuda().masked_scatter_(mask.cuda(), source.cuda()), x.clone().masked_scatter_(mask, source))
    if x.ndim == 3:
        device, host = x.cuda().transpose(0, 2), x.transpose(0, 2)
        same(device.masked_select(mask.cuda().transpose(0, 2)), host.masked_select(mask.transpose(0, 2)))
        row = torch.tensor([True, False, True])
        same(device.masked_scatter(row.cuda(), source.cuda()), host.masked_scatter(row, source))
        same(device[:, row.cuda().nonzero().squeeze(1)], host[:, row.nonzero().squeeze(1)])
        device[mask.cuda().transpose(0, 2)] = 1
        host[mask.transpose(0, 2)] = 1
        same(device, host)


def test_a_mask_without_an_element():
    x = torch.arange(5.0)
    nothing = torch.zeros(5, dtype=torch.bool)
    same(x.cuda()[nothing.cuda()], x[nothing])
    same(x.cuda().masked_scatter_(nothing.cuda(), torch.zeros(0).cuda()), x)


def test_what_is_written_may_be_what_is_read():
    x = torch.arange(6.0)
    mask = torch.tensor([True, False, True, True, False, True])
    device = x.cuda()
    same(device.masked_scatter_(mask.cuda(), device), torch.tensor([0.0, 1.0, 1.0, 2.0, 4.0, 3.0]))
    same(mask.cuda().masked_scatter_(mask.cuda(), ~mask.cuda()), mask.clone().masked_scatter_(mask, ~mask))
    device = torch.tensor([2, 0, 1]).cuda()
    same(device.scatter_(0, device, device), torch.tensor([0, 1, 2]))


def test_more_marks_than_values_write_nothing():
    x = torch.zeros(5000).cuda()
    with pytest.raises(RuntimeError, match="more true elements"):
        x.masked_scatter_(torch.ones(5000, dtype=torch.bool).cuda(), torch.ones(4999).cuda())
        torch.cuda.synchronize()
    same(x, torch.zeros(5000))


def test_gradients_of_chosen_elements():
    grads = []
    for device in ("cpu", "cuda"):
        x = torch.arange(12.0).reshape(3, 4).to(device).requires_grad_()
        mask = (torch.arange(12) % 5 < 2).reshape(3, 4).to(device)
        (x.masked_select(mask) * 3).sum().backward()
        grads.append(x.grad)
    same(grads[1], grads[0])
