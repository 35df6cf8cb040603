"""An ordinary program for type checkers. `nox -s types` checks it with mypy; pytest does not run it."""

from __future__ import annotations

from typing import Any, assert_type

import rushlight as torch
from rushlight import Tensor, nn, optim
from rushlight.nn import functional as F
from rushlight.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.layer(x)) * self.scale


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * grad * x**2


def calls(x: Tensor) -> None:
    """A call of a module has the arguments and the result of its `forward`."""
    assert_type(Net()(x), Tensor)
    assert_type(nn.Linear(4, 2)(x), Tensor)
    assert_type(nn.Sequential(nn.Linear(4, 2), nn.ReLU())(x), Tensor)
    assert_type(F.linear(x, x), Tensor)
    Net()(x, x)  # type: ignore[call-arg]
    F.conv2d(x, x, step=2)  # type: ignore[call-overload]


def tensors(x: Tensor, mask: Tensor) -> None:
    assert_type(x + 1, Tensor)
    assert_type(1 - x, Tensor)
    assert_type(x @ x.T, Tensor)
    assert_type(x == 1, Tensor)
    assert_type(x[0, ..., None, mask], Tensor)
    assert_type(x.shape, torch.Size)
    assert_type(x.shape[0], int)
    assert_type(x.size(), torch.Size)
    assert_type(x.size(0), int)
    assert_type(x.dtype, torch.dtype)
    assert_type(x.grad, Tensor | None)
    assert_type(x.add_(1).mul_(2), Tensor)
    assert_type(x.tolist(), Any)
    assert_type(len(x), int)
    assert_type(torch.is_grad_enabled(), bool)


def overloads(x: Tensor) -> None:
    assert_type(x.sum(), Tensor)
    assert_type(x.sum(0, keepdim=True), Tensor)
    assert_type(x.max(), Tensor)
    assert_type(x.max(dim=1).values, Tensor)
    values, indices = torch.max(x, 1)
    assert_type(values + indices, Tensor)
    assert_type(x.view(2, -1), Tensor)
    assert_type(x.view((2, -1)), Tensor)
    assert_type(torch.zeros(2, 3, dtype=torch.int64), Tensor)
    assert_type(torch.zeros([2, 3]), Tensor)
    assert_type(torch.split(x, 2), tuple[Tensor, ...])
    assert_type(torch.broadcast_tensors(x, x), tuple[Tensor, ...])
    assert_type(x.topk(3).indices, Tensor)
    assert_type(torch.where(x > 0, x, 0.0), Tensor)
    assert_type(x.to("cpu", torch.float64), Tensor)
    assert_type(x.to(torch.float64), Tensor)


def mistakes(x: Tensor) -> None:
    # With `warn_unused_ignores`, mypy reports a line below that is not an error.
    x.view("2")  # type: ignore[arg-type]
    torch.zeros(2, dtype="float32")  # type: ignore[call-overload]
    torch.cat(x)  # type: ignore[arg-type]
    x.softmax()  # type: ignore[call-arg]
    x.shape = (2, 3)  # type: ignore[misc,assignment]
    torch.no_such_operator(x)  # type: ignore[attr-defined]


def train() -> None:
    net = Net().to("cpu")
    optimizer = optim.AdamW(net.parameters(), lr=1e-3)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    loader = DataLoader(TensorDataset(torch.rand(8, 4), torch.zeros(8, dtype=torch.int64)), batch_size=4)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(inputs), targets)
        assert_type(loss, Tensor)
        loss.backward()
        optimizer.step()
        scheduler.step()
    first, second = torch.autograd.grad(loss, [net.scale, net.layer.weight])
    assert_type(first + second, Tensor)
    torch.save(net.state_dict(), "net.pt")
    net.load_state_dict(torch.load("net.pt"))
    with torch.no_grad():
        net.eval()
    assert_type(torch.cuda.is_available(), bool)
