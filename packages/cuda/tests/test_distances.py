"""Distances between rows, hashes and indices of triangles on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch

pytestmark = pytest.mark.usefixtures("driver")


def numbers(*shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    return ((torch.arange(n) * 7 % 23 - 11) / 4).reshape(shape)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_and_their_gradients(dtype, p):
    a, b = numbers(2, 5, 9).to(dtype), numbers(2, 300, 9).flip(1).to(dtype)
    b[:, 3] = a[:, 0]  # a distance of zero
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for x, y in ((a, b), (a.transpose(0, 1).contiguous().transpose(0, 1), b), (a[..., :0], b[..., :0])):
        made = []
        for device in ("cpu", "cuda"):
            left, right = x.detach().to(device).requires_grad_(), y.detach().to(device).requires_grad_()
            far = torch.cdist(left, right, p, compute_mode="donot_use_mm_for_euclid_dist")
            (far * numbers(2, 5, 300).to(far)).sum().backward()
            made.append([far.detach().cpu(), left.grad.cpu(), right.grad.cpu()])
        for one, other in zip(*made, strict=True):
            torch.testing.assert_close(one, other, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_distances_of_nan(p):
    a = torch.tensor([[1.0, float("nan")], [0.0, 2.0]])
    torch.testing.assert_close(torch.cdist(a.cuda(), a.cuda(), p).cpu(), torch.cdist(a, a, p), equal_nan=True)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "uint64", "float16", "float32", "float64"])
def test_hashes(dtype):
    x = (torch.arange(5 * 6 * 70) * 7919 % 251).reshape(5, 6, 70).to(getattr(torch, dtype))
    for dim in (0, 1, 2, (0, 2), (-1, -3)):
        for t in (x, x.transpose(0, 2), x[:, :0]):
            assert torch.hash_tensor(t.cuda(), dim).cpu().equal(torch.hash_tensor(t, dim))
    assert torch.hash_tensor(x.cuda()).cpu().equal(torch.hash_tensor(x))
    assert torch.hash_tensor(x[0, 0, 0].cuda()).cpu().equal(torch.hash_tensor(x[0, 0, 0]))


@pytest.mark.parametrize("offset", [-40, -7, -2, -1, 0, 1, 3, 8, 40, (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 5), (3, 9), (9, 3), (0, 4), (4, 0), (40, 30)])
def test_indices_of_triangles(rows, columns, offset):
    for make in (torch.tril_indices, torch.triu_indices):
        host = make(rows, columns, offset)
        device = make(rows, columns, offset, device="cuda")
        assert device.device.type == "cuda"
        assert device.cpu().equal(host)
    assert make(rows, columns, offset, dtype=torch.int32, device="cuda").cpu().equal(host.int())
