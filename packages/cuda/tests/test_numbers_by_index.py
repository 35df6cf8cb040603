"""Numbers written by index on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch

pytestmark = pytest.mark.usefixtures("driver")

DTYPES = ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64", "complex128"]


def example(dtype: str, *shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    return (torch.arange(n) * 7 % 23).reshape(shape).to(getattr(torch, dtype))


def same(device: torch.Tensor, host: torch.Tensor) -> None:
    assert device.device.type == "cuda"
    torch.testing.assert_close(device.cpu(), host, rtol=0, atol=0)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_by_index(dtype, dim):
    x = example(dtype, 4, 5, 8)
    indices = torch.tensor([[[0, 3, 1]], [[2, 2, 0]]])
    slices = torch.tensor([1, -1, 1])
    for with_layout in (lambda t: t, lambda t: t.transpose(0, 2), lambda t: t[:, :, ::2]):
        device, host = with_layout(x.cuda()), with_layout(x.clone())
        same(device.scatter_(dim, indices.cuda(), 1), host.scatter_(dim, indices, 1))
        device, host = with_layout(x.cuda()), with_layout(x.clone())
        same(device.index_fill_(dim, slices.cuda(), 1), host.index_fill_(dim, slices, 1))
    device, host = x.cuda(), x.clone()
    device.transpose(0, 2)[::2].index_fill_(dim, slices.cuda(), 1)
    host.transpose(0, 2)[::2].index_fill_(dim, slices, 1)
    same(device, host)
    device.transpose(0, 2)[1:].scatter_(dim, indices.cuda(), 0)
    host.transpose(0, 2)[1:].scatter_(dim, indices, 0)
    same(device, host)


def test_nothing_and_one_element():
    nothing = torch.zeros(0, dtype=torch.int64)
    same(torch.ones(3).cuda().scatter_(0, nothing.cuda(), 5), torch.ones(3))
    same(torch.ones(3).cuda().index_fill_(0, nothing.cuda(), 5), torch.ones(3))
    same(torch.tensor(1.0).cuda().scatter_(0, torch.tensor([0]).cuda(), 5), torch.tensor(5.0))
    same(torch.tensor(1.0).cuda().index_fill_(0, torch.tensor([-1]).cuda(), 5), torch.tensor(5.0))


def test_the_index_may_be_what_is_written():
    x = torch.tensor([2, 0, 1])
    device = x.cuda()
    same(device.index_fill_(0, device, 1), torch.tensor([1, 1, 1]))
    device = x.cuda()
    same(device.scatter_(0, device, 7), torch.tensor([7, 7, 7]))


@pytest.mark.parametrize("name", ["scatter_", "index_fill_"])
@pytest.mark.parametrize("bad", [4, -5])
def test_an_index_out_of_range_writes_nothing(name, bad):
    x = torch.zeros(4).cuda()
    with pytest.raises(IndexError, match="range"):
        getattr(x, name)(0, torch.tensor([bad]).cuda(), 1)
        torch.cuda.synchronize()
    same(x, torch.zeros(4))
