"""`Join` and `DistributedDataParallel.join`: ranks with different numbers of batches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
import rushlight.distributed as dist
from rushlight import nn
from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook
from rushlight.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parent))
from wrapped_ranks import Chosen, run_ranks


@pytest.fixture(autouse=True, params=["shm", "pipes"])
def kind(request: pytest.FixtureRequest) -> str:
    """Select the implementation of groups for the test."""
    Chosen.kind = request.param
    return Chosen.kind


def batch(rank: int, step: int) -> torch.Tensor:
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(10 * rank + step))


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))


def trained(rank: int, counts: list[int], by_initial: bool) -> list[Any]:
    model = DistributedDataParallel(net(), bucket_cap_mb=1e-6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join(divide_by_initial_world_size=by_initial):
        for step in range(counts[rank]):
            optimizer.zero_grad()
            model(batch(rank, step)).square().sum().backward()
            optimizer.step()
    model(batch(rank, 0)).sum().backward()  # all ranks continue together
    return [p.tolist() for p in model.parameters()]


@pytest.mark.parametrize("counts", [[1, 4], [3, 1], [0, 2], [2, 0], [2, 2], [3, 1, 2]])
@pytest.mark.parametrize("by_initial", [True, False])
def test_ranks_with_fewer_batches_count_as_zero(counts: list[int], by_initial: bool, tmp_path: Path) -> None:
    results = run_ranks(trained, len(counts), tmp_path, counts, by_initial)
    assert all(result == results[0] for result in results)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(max(counts)):
        ranks = [rank for rank, count in enumerate(counts) if step < count]
        optimizer.zero_grad()
        for rank in ranks:
            loss = model(batch(rank, step)).square().sum()
            (loss / (len(counts) if by_initial else len(ranks))).backward()
        optimizer.step()
    for mine, parameter in zip(results[0], model.parameters(), strict=True):
        torch.testing.assert_close(torch.tensor(mine), parameter.detach(), rtol=1e-4, atol=1e-6)


class Skipping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.a, self.b = nn.BatchNorm1d(4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, skip: bool) -> torch.Tensor:
        x = self.a(self.norm(x))
        return x if skip else self.b(x)


def varied(rank: int) -> Any:
    torch.manual_seed(0)
    model = DistributedDataParallel(Skipping(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join():
        for step in range(2 + 3 * rank):
            if step % 2:
                with model.no_sync():
                    model(batch(rank, step), False).sum().backward()
            with torch.no_grad():
                model(batch(rank, step), True)
            model(batch(rank, step), step % 2 == 0).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    return [t.tolist() for t in model.state_dict().values()]


def test_unused_parameters_buffers_and_passes_without_sums(tmp_path: Path) -> None:
    first, second = run_ranks(varied, 2, tmp_path)
    assert first == second


def hooked(rank: int) -> Any:
    model = DistributedDataParallel(net())

    def mean(group: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        group.reduce_tensors([bucket.buffer()], "AVG").wait()
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    model.register_comm_hook(model.process_group, mean)
    with model.join():
        for step in range(1 + 2 * rank):
            model(batch(rank, step)).sum().backward()
    return [p.grad.tolist() for p in model.parameters()]


def test_hooks_of_ranks_without_batches(tmp_path: Path) -> None:
    first, second = run_ranks(hooked, 2, tmp_path)
    assert first != second  # the second rank added more passes


def early(rank: int) -> int:
    model = DistributedDataParallel(net())
    steps = 0
    with pytest.raises(RuntimeError, match="exhausted inputs"), model.join(throw_on_early_termination=True):
        for step in range(2 + rank):
            model(batch(rank, step)).sum().backward()
            steps += 1
    return steps


def test_all_ranks_raise_if_asked(tmp_path: Path) -> None:
    assert run_ranks(early, 2, tmp_path) == [2, 2]


class Counter(Joinable):
    """A Joinable that counts the steps of all ranks."""

    def __init__(self, group: Any) -> None:
        super().__init__()
        self.group, self.total, self.ended = group, 0, []

    def step(self) -> None:
        Join.notify_join_context(self)
        self.add(1)

    def add(self, count: int) -> None:
        value = torch.tensor([count])
        self.group.reduce_tensors([value], "SUM").wait()
        self.total += int(value)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        counter = self

        class Hook(JoinHook):
            def main_hook(self) -> None:
                counter.add(0)

            def post_hook(self, is_last_joiner: bool) -> None:
                counter.ended.append((is_last_joiner, kwargs))

        return Hook()

    @property
    def join_device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def join_process_group(self) -> Any:
        return self.group


def counted(rank: int) -> Any:
    model = DistributedDataParallel(net())
    group = model.process_group
    one, two = Counter(group), Counter(group)
    with Join([one, two, model], extra=5):
        for step in range(3 + 2 * rank):
            one.step()
            two.step()
            model(batch(rank, step)).sum().backward()
    with Join([one], enable=False):
        one.step()
    with pytest.raises(KeyError), Join([one]):
        raise KeyError
    one.step()
    return one.total, two.total, one.ended


def test_several_objects_join(tmp_path: Path) -> None:
    first, second = run_ranks(counted, 2, tmp_path)
    assert first == (8 + 2 + 2, 8, [(False, {"extra": 5})])
    assert second == (8 + 2 + 2, 8, [(True, {"extra": 5})])


def refused(rank: int) -> None:
    class Careless(Counter):
        def __init__(self) -> None:
            pass

    counter = Counter(DistributedDataParallel(net()).process_group)
    with pytest.raises(ValueError, match="at least one"):
        Join([])
    with pytest.raises(TypeError, match="Joinable objects, got int"):
        Join([3])
    with pytest.raises(TypeError, match="has not called"):
        Join([Careless()])
    with pytest.raises(AssertionError, match="calls the Joinable constructor"):
        Join.notify_join_context(Careless())
    with pytest.raises(ValueError, match="multiple process groups"):
        Join([counter, Counter(None)])
    with pytest.raises(TypeError, match="abstract"):
        Joinable()


def test_what_cannot_join(tmp_path: Path) -> None:
    run_ranks(refused, 1, tmp_path)
