"""`DistributedDataParallel` in several processes, compared with one process that gets the whole batch.

The wrapper uses a group through a seam, so all tests also run with a second implementation of groups, over pipes.
"""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parent))
from wrapped_ranks import Chosen, run_ranks


@pytest.fixture(autouse=True, params=["shm", "pipes"])
def kind(request: pytest.FixtureRequest) -> str:
    """Select the implementation of groups for the test."""
    Chosen.kind = request.param
    return Chosen.kind


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 300)
        self.norm = nn.BatchNorm1d(300)
        self.second = nn.Linear(300, 300)
        self.last = nn.Linear(300, 3)
        self.spare = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, spare: bool = False) -> torch.Tensor:
        y = self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))
        return self.spare(y) if spare else y


def net(seed: int = 0) -> Net:
    torch.manual_seed(seed)
    return Net()


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return torch.randn(12, 8, generator=generator), torch.randint(0, 3, (12,), generator=generator)


def train(model: nn.Module, parts: Callable[[torch.Tensor], torch.Tensor]) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(4):
        x, y = batch(step)
        loss = nn.functional.cross_entropy(model(parts(x), spare=True), parts(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def trained(rank: int, cap: float) -> Any:
    model = net(rank)
    del model.norm
    wrapped = DistributedDataParallel(model, bucket_cap_mb=cap)
    train(wrapped, lambda t: t[rank::2])
    reducer = wrapped._reducer
    return {name: p.tolist() for name, p in wrapped.state_dict().items()}, len(reducer.buckets)


@pytest.mark.parametrize(("cap", "several"), [(25.0, False), (0.01, True)])
def test_ranks_train_like_one_process(cap: float, several: bool, tmp_path: Path) -> None:
    one = net(0)
    del one.norm
    train(one, lambda t: t)
    (first, count), (second, _) = run_ranks(trained, 2, tmp_path, cap)
    assert first == second  # equal bit for bit
    assert (count > 1) == several
    assert all(name.startswith("module.") for name in first)
    for name, parameter in one.named_parameters():
        torch.testing.assert_close(
            torch.tensor(first[f"module.{name}"]), parameter.detach(), rtol=1e-4, atol=1e-6
        )


def ordered(rank: int) -> list[Any]:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            chain = (self.a, self.b, self.c) if rank == 0 else (self.c, self.a, self.b)
            for layer in chain:
                x = layer(x)
            return x

    torch.manual_seed(0)
    wrapped = DistributedDataParallel(Branches(), bucket_cap_mb=1e-6)
    for _ in range(2):
        wrapped.zero_grad()
        wrapped(torch.ones(3, 2)).sum().backward()
    names = wrapped._reducer.names
    return [
        [names[i] for bucket in wrapped._reducer.buckets for i in bucket],
        [p.grad.tolist() for p in wrapped.parameters()],
    ]


def test_buckets_have_the_order_of_rank_0(tmp_path: Path) -> None:
    first, second = run_ranks(ordered, 2, tmp_path)
    assert first == second
    assert [name[0] for name in first[0]] == ["c", "c", "b", "b", "a", "a"]


def accumulated(rank: int) -> Any:
    model, plain = net(0), net(0)
    wrapped = DistributedDataParallel(model, find_unused_parameters=True)
    with wrapped.no_sync():
        wrapped(torch.ones(2, 8) * (rank + 1), spare=rank == 1).sum().backward()
    alone = model.first.weight.grad.clone()
    wrapped(torch.ones(2, 8)).sum().backward()
    for r in range(2):
        plain(torch.ones(2, 8) * (r + 1), spare=r == 1).sum().backward()
        plain(torch.ones(2, 8)).sum().backward()
    want = plain.first.weight.grad / 2
    torch.testing.assert_close(model.first.weight.grad, want)
    torch.testing.assert_close(model.spare.weight.grad, plain.spare.weight.grad / 2)
    assert model.norm.weight.grad is None  # no rank used it
    return alone.tolist()


def test_no_sync_and_parameters_that_a_rank_does_not_use(tmp_path: Path) -> None:
    first, second = run_ranks(accumulated, 2, tmp_path)
    assert first != second


def unused(rank: int) -> str:
    wrapped = DistributedDataParallel(net(0))
    with pytest.raises(RuntimeError) as error:
        wrapped(torch.ones(2, 8), spare=rank == 0).sum().backward()
    return str(error.value)


def test_parameters_without_a_gradient_raise_on_all_ranks(tmp_path: Path) -> None:
    for text in run_ranks(unused, 2, tmp_path):
        assert "got no gradient" in text
        assert "find_unused_parameters=True" in text


def buffers(rank: int) -> list[float]:
    torch.manual_seed(0)
    wrapped = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    assert wrapped.broadcast_buffers
    assert not DistributedDataParallel(nn.Linear(2, 2), forward_sync_buffers=False).broadcast_buffers
    for _ in range(2):
        wrapped(torch.randn(4, 2) + rank).sum().backward()
    before = wrapped.module[1].running_mean.tolist()
    wrapped.eval()(torch.ones(2, 2))
    return [before, wrapped.module[1].running_mean.tolist()]


def test_buffers_are_those_of_rank_0(tmp_path: Path) -> None:
    first, second = run_ranks(buffers, 2, tmp_path)
    assert first[0] != second[0]
    assert first[0] == first[1] == second[1]


def layer(rank: int, difference: str) -> nn.Module:
    """Return a module that differs between ranks in one respect."""
    if difference == "shape":
        return nn.Linear(3, 2 + rank)
    if difference == "dtype":
        return nn.LayerNorm(2).to(torch.float64 if rank else torch.float32)
    if difference == "buffers":
        return nn.BatchNorm1d(2, track_running_stats=rank == 0)
    module = nn.LayerNorm(2)
    if difference == "frozen":  # as many parameters of the same shapes, but others
        (module.bias if rank else module.weight).requires_grad_(False)
    elif rank:
        module.requires_grad_(False)
    return module


def differing(rank: int, difference: str) -> str:
    with pytest.raises(RuntimeError) as error:
        DistributedDataParallel(layer(rank, difference))
    return str(error.value)


@pytest.mark.parametrize(
    ("difference", "first", "second"),
    [
        ("shape", "parameter 'weight' of shape (2, 3)", "parameter 'weight' of shape (3, 3)"),
        ("dtype", "float32, requires_grad=True", "float64, requires_grad=True"),
        ("buffers", "buffer 'running_mean' of shape (2,)", "no further parameter or buffer"),
        ("frozen", "parameter 'weight'", "parameter 'weight'"),
        ("all frozen", "parameter 'weight'", "parameter 'weight'"),
    ],
)
def test_other_parameters_are_refused_on_all_ranks(
    difference: str, first: str, second: str, tmp_path: Path
) -> None:
    for text in run_ranks(differing, 2, tmp_path, difference):
        assert "expects same model across all ranks, but rank 1 has other parameters or buffers" in text
        on_first, on_second = text.splitlines()[1:3]
        assert on_first.startswith("  rank 0: ")
        assert on_second.startswith("  rank 1: ")
        assert first in on_first
        assert second in on_second
        if "frozen" in difference:
            assert ("requires_grad=True" in on_first) != ("requires_grad=True" in on_second)


def failing(rank: int) -> str:
    wrapped = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), bucket_cap_mb=1e-6)
    wrapped(torch.ones(2, 2)).sum().backward()

    def hook(grad: torch.Tensor) -> None:
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    y = wrapped.module[0](torch.ones(2, 2))
    y.register_hook(hook)
    with pytest.raises(RuntimeError) as error:
        wrapped.module[1](y).sum().backward()
    return str(error.value)


@pytest.mark.parametrize("kind", ["shm"], indirect=True)
def test_a_rank_that_dies_in_a_backward_pass_is_named(tmp_path: Path) -> None:
    first, second = run_ranks(failing, 2, tmp_path)
    assert second == "died"
    assert "rank 1 (process" in first
    assert "gradients of pass 1" in first


def recovered(rank: int) -> list[float]:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    wrapped = DistributedDataParallel(model)
    wrapped(torch.ones(2, 2)).sum().backward()
    x = torch.ones(2, 2, requires_grad=True)

    def fail(_: torch.Tensor) -> None:
        raise KeyError

    x.register_hook(fail)
    handle = model[0].weight.register_hook(fail)
    with pytest.raises(KeyError):
        wrapped(x).sum().backward()
    handle.remove()
    wrapped.zero_grad()
    wrapped(torch.ones(2, 2) * (rank + 1)).sum().backward()
    return model[0].weight.grad.tolist()


def test_a_pass_after_one_that_raised(tmp_path: Path) -> None:
    first, second = run_ranks(recovered, 2, tmp_path)
    assert first == second


def copied(rank: int) -> list[Any]:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(2, 2), bucket_cap_mb=1)
    results = []
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other(torch.full((1, 2), float(rank))).sum().backward()
        results.append(other.module.weight.grad.tolist())
        assert model.module.weight.grad is None
    return results


def test_copies_and_pickles_train(tmp_path: Path) -> None:
    assert run_ranks(copied, 2, tmp_path) == [[[[0.5, 0.5], [0.5, 0.5]]] * 2] * 2


def sparse(rank: int) -> str:
    model = DistributedDataParallel(nn.Embedding(5, 2, sparse=True))
    with pytest.raises((NotImplementedError, RuntimeError)) as error:
        model(torch.tensor([rank])).sum().backward()
    return str(error.value)


def test_sparse_gradients_are_refused_on_all_ranks(tmp_path: Path) -> None:
    for text in run_ranks(sparse, 2, tmp_path):
        assert "the gradient of 'weight' is sparse, which is not supported" in text


def test_without_a_group_it_is_refused() -> None:
    with pytest.raises(RuntimeError, match="has not been initialized"):
        DistributedDataParallel(nn.Linear(2, 2))
