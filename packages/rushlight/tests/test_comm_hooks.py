"""Communication hooks of `DistributedDataParallel`, compared with the gradients without a hook."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
import rushlight.distributed as dist
from rushlight import nn
from rushlight.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks, powerSGD_hook
from rushlight.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parent))
from wrapped_ranks import Chosen, run_ranks


@pytest.fixture(autouse=True)
def kind() -> None:
    Chosen.kind = "shm"


def model(**options: Any) -> DistributedDataParallel:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 25), nn.Tanh(), nn.Linear(25, 2))
    return DistributedDataParallel(layers, bucket_cap_mb=0.002, **options)


def gradients(wrapped: DistributedDataParallel, rank: int, passes: int = 3) -> list[torch.Tensor]:
    for step in range(passes):
        wrapped.zero_grad()
        generator = torch.Generator().manual_seed(10 * step + rank)
        wrapped(torch.randn(2, 20, generator=generator)).square().sum().backward()
    return [p.grad.clone() for p in wrapped.parameters()]


def averaged(rank: int) -> list[int]:
    want = gradients(model(), rank)
    hooks: list[tuple[Any, Callable[..., Any], float]] = [
        (None, default_hooks.allreduce_hook, 1e-6),
        (dist.group.WORLD, default_hooks.fp16_compress_hook, 2e-3),
        (None, default_hooks.bf16_compress_hook, 2e-2),
        (None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 2e-3),
        (None, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), 2e-2),
    ]
    for state, hook, tolerance in hooks:
        hooked = model()
        hooked.register_comm_hook(state, hook)
        got = gradients(hooked, rank)
        assert len(hooked._reducer.buckets) > 1
        for mine, expected in zip(got, want, strict=True):
            scale = expected.abs().max().item()
            torch.testing.assert_close(mine, expected, rtol=0, atol=tolerance * scale)
        exact = all(torch.equal(mine, expected) for mine, expected in zip(got, want, strict=True))
        assert exact == (tolerance == 1e-6), hook  # a division by 2 is exact
    return [len(hooked._reducer.buckets)]


def test_hooks_that_average(tmp_path: Path) -> None:
    run_ranks(averaged, 2, tmp_path)


def seen(rank: int) -> Any:
    wrapped = model(find_unused_parameters=True)
    calls: list[Any] = []

    def hook(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        views = bucket.gradients()
        assert [tuple(v.shape) for v in views] == [tuple(p.shape) for p in bucket.parameters()]
        assert bucket.buffer().numel() == sum(v.numel() for v in views)
        calls.append((state, bucket.index(), bucket.is_last(), [id(p) for p in bucket.parameters()]))
        bucket.set_buffer(torch.full_like(bucket.buffer(), 7.0))
        assert all(torch.all(v == 7.0) for v in bucket.gradients())
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    wrapped.register_comm_hook("state", hook)
    with pytest.raises(RuntimeError, match="only be called once"):
        wrapped.register_comm_hook("state", hook)
    wrapped.module[:3](torch.ones(1, 20)).sum()
    wrapped(torch.ones(1, 20)).sum().backward()
    assert all(torch.all(p.grad == 7.0) for p in wrapped.parameters())
    assert {state for state, *_ in calls} == {"state"}
    assert [index for _, index, *_ in calls] == list(range(len(calls)))
    assert [last for _, _, last, _ in calls] == [False] * (len(calls) - 1) + [True]
    assert {i for *_, ids in calls for i in ids} == {id(p) for p in wrapped.parameters()}
    count = len(calls)
    with wrapped.no_sync():
        wrapped(torch.ones(1, 20)).sum().backward()
    assert len(calls) == count
    return pickle.loads(pickle.dumps(wrapped))._reducer.hook


def test_what_a_hook_gets(tmp_path: Path) -> None:
    assert run_ranks(seen, 2, tmp_path) == [None, None]


def local(rank: int) -> bool:
    wrapped, plain = model(), model()
    wrapped.register_comm_hook(None, debugging_hooks.noop_hook)
    with plain.no_sync():
        want = gradients(plain, rank, 1)
    return all(map(torch.equal, gradients(wrapped, rank, 1), want))


def test_noop_hook_leaves_gradients(tmp_path: Path) -> None:
    assert run_ranks(local, 2, tmp_path) == [True, True]


def low_rank(rank: int) -> None:
    want = gradients(model(), rank)  # the mean over two ranks with two samples each has rank 4
    for hook in (
        powerSGD_hook.powerSGD_hook,
        default_hooks.bf16_compress_wrapper(powerSGD_hook.powerSGD_hook),
    ):
        wrapped = model()
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
        wrapped.register_comm_hook(state, hook)
        tolerance = 1e-4 if hook is powerSGD_hook.powerSGD_hook else 0.1
        for mine, expected in zip(gradients(wrapped, rank), want, strict=True):
            scale = expected.abs().max().item()
            torch.testing.assert_close(mine, expected, rtol=0, atol=tolerance * scale)
        assert state.iter == 3
        rate, before, after = state.compression_stats()
        assert 1 < rate == before / after
    assert pickle.loads(pickle.dumps(state)).iter == 3


def test_powersgd_of_gradients_of_low_rank(tmp_path: Path) -> None:
    run_ranks(low_rank, 2, tmp_path)


@pytest.mark.parametrize("name", ["powerSGD_hook", "batched_powerSGD_hook"])
def test_powersgd_adds_what_it_left_out(name: str, tmp_path: Path) -> None:
    def feed_back(rank: int) -> list[float]:
        wrapped = model()
        state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2)
        wrapped.register_comm_hook(state, getattr(powerSGD_hook, name))
        gradients(wrapped, rank, 2)
        total = [torch.zeros_like(p) for p in wrapped.parameters()]
        for _ in range(30):
            wrapped.zero_grad()
            wrapped(torch.ones(2, 20) * torch.tensor([[1.0], [-0.5]])).square().sum().backward()
            total = [t + p.grad for t, p in zip(total, wrapped.parameters(), strict=True)]
        plain = model()
        plain(torch.ones(2, 20) * torch.tensor([[1.0], [-0.5]])).square().sum().backward()
        for index, numbers in enumerate(wrapped._reducer.buckets):
            sums = torch.cat([total[number].flatten() for number in numbers])
            grads = torch.cat([list(plain.parameters())[number].grad.flatten() for number in numbers])
            torch.testing.assert_close(sums + state.error_dict[index], 30 * grads, rtol=1e-3, atol=1e-4)
        assert max(error.abs().max().item() for error in state.error_dict.values()) > 1e-3
        return [p.grad.sum().item() for p in wrapped.parameters()]

    first, second = run_ranks(feed_back, 2, tmp_path)
    assert first == second


def failing(rank: int) -> str:
    wrapped = model()

    def hook(state, bucket):
        if rank == 1 and bucket.index() == 1:
            raise KeyError("broken")
        return default_hooks.allreduce_hook(state, bucket)

    wrapped.register_comm_hook(None, hook)
    with pytest.raises(RuntimeError) as error:
        gradients(wrapped, rank)
    return str(error.value)


def test_a_hook_that_raises_on_one_rank(tmp_path: Path) -> None:
    for text in run_ranks(failing, 2, tmp_path):
        assert "the communication hook hook raised on rank 1: KeyError('broken')" in text


def wrong(rank: int, kind: str) -> str:
    wrapped = model()

    def hook(state, bucket):
        future: torch.futures.Future[Any] = torch.futures.Future()
        if kind == "an error":
            future.set_exception(ValueError("later"))
        else:
            future.set_result({"short": bucket.buffer()[1:], "None": None}.get(kind))
        return bucket.buffer() if kind == "no future" else future

    wrapped.register_comm_hook(None, hook)
    with pytest.raises(RuntimeError) as error:
        gradients(wrapped, rank)
    return str(error.value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("no future", "must return a torch.futures.Future, got Tensor"),
        ("short", "elements, got"),
        ("None", "elements, got NoneType"),
        ("an error", "later"),
    ],
)
def test_hooks_that_return_something_else(kind: str, text: str, tmp_path: Path) -> None:
    assert text in run_ranks(wrong, 1, tmp_path, kind)[0]


def annotated(rank: int) -> None:
    wrapped = model()

    def other_bucket(state: Any, bucket: int) -> torch.futures.Future[torch.Tensor]: ...

    def other_result(state: Any, bucket: dist.GradBucket) -> int: ...

    with pytest.raises(ValueError, match="bucket annotation"):
        wrapped.register_comm_hook(None, other_bucket)
    with pytest.raises(ValueError, match="return annotation"):
        wrapped.register_comm_hook(None, other_result)
    with pytest.raises(TypeError, match="must be callable"):
        wrapped.register_comm_hook(None, 3)
    with pytest.raises(ValueError, match="start_powerSGD_iter"):
        powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1)


def test_what_is_no_hook(tmp_path: Path) -> None:
    run_ranks(annotated, 1, tmp_path)
