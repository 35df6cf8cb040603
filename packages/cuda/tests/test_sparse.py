"""Products of sparse matrices on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight_core import _C

pytestmark = pytest.mark.usefixtures("driver")

FLOATS = ["float16", "bfloat16", "float32", "float64"]


def operands(dtype: str, n: int, width: int) -> tuple[torch.Tensor, ...]:
    kind = getattr(torch, dtype)
    row, column = torch.arange(n) * 7919 % 6, torch.arange(n) * 31 % 5
    return (
        row,
        column,
        ((torch.arange(n) % 9 - 4) / 4).to(kind),
        ((torch.arange(5 * width) % 13 - 6) / 8).reshape(5, width).to(kind),
    )


@pytest.mark.parametrize("n", [0, 1, 40, 700])
@pytest.mark.parametrize("dtype", FLOATS)
def test_products(dtype, n):
    row, column, values, dense = operands(dtype, n, 7)
    tolerance = {"float16": 2e-3, "bfloat16": 1e-2}.get(dtype, 1e-6)
    for order in (torch.arange(n), row.argsort(stable=True)):
        given = row[order], column[order], values[order]
        for place in (dense, dense.t().contiguous().t(), dense[:, :0]):
            host = _C._call_boxed("_sparse_mm", *given, place, 8)
            device = _C._call_boxed("_sparse_mm", *(t.cuda() for t in given), place.cuda(), 8)
            assert device.device.type == "cuda"
            torch.testing.assert_close(device.cpu(), host, rtol=tolerance, atol=tolerance)
    a, b = dense, dense.flip(0)
    for x, y in ((a, b), (a.t().contiguous().t(), b), (a[:, :0], b[:, :0])):
        host = torch._sampled_products(row % 5, column, x, y)
        device = torch._sampled_products(row.cuda() % 5, column.cuda(), x.cuda(), y.cuda())
        torch.testing.assert_close(device.cpu(), host, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("row", "column"), [(4, 0), (-1, 0), (0, 3), (0, -1)])
def test_positions_out_of_range(row, column):
    at = torch.tensor([0, row]).cuda(), torch.tensor([0, column]).cuda()
    dense = torch.ones(3, 2).cuda()
    with pytest.raises(IndexError, match="range"):
        _C._call_boxed("_sparse_mm", *at, torch.ones(2).cuda(), dense, 4)
        torch.cuda.synchronize()
    with pytest.raises(IndexError, match="range"):
        torch._sampled_products(*at, torch.ones(4, 2).cuda(), dense)
        torch.cuda.synchronize()
    torch.testing.assert_close((dense + 1).cpu(), torch.full((3, 2), 2.0))


def test_a_sparse_layer_and_its_gradients():
    grads = []
    for device in ("cpu", "cuda"):
        matrix = torch.sparse_coo_tensor(
            torch.tensor([[0, 2, 2, 1], [1, 0, 0, 2]]), torch.tensor([1.0, 2.0, 3.0, 4.0]), (4, 3)
        ).to(device)
        dense = torch.arange(15.0).reshape(3, 5).to(device).requires_grad_()
        (torch.sparse.mm(matrix, dense) ** 2).sum().backward()
        grads.append(dense.grad.cpu())
    torch.testing.assert_close(grads[1], grads[0])
