"""Collectives over shared memory, compared with sums that this process computes rank by rank."""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
from datetime import timedelta
from functools import reduce as fold
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ranks import run_ranks

import rushlight_core as core
from rushlight_multiprocessing import distributed as dist
from rushlight_multiprocessing.distributed import world

SIZES = [(), (0,), (1,), (3, 5), (70_001,)]  # in float32, the last one is longer than a buffer
FLOATING = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]
DTYPES = [*FLOATING, *INTEGERS, "complex64"]


def value(rank: int, shape: tuple[int, ...], dtype: str) -> Any:
    """Return the tensor of a rank. Sums of its values are not exact in float16 and bfloat16."""
    random = np.random.default_rng(100 * rank + len(shape))
    if dtype == "bool":
        return core.tensor(random.integers(0, 2, shape).astype(bool))
    if dtype in INTEGERS:
        return core.tensor(random.integers(0, 100, shape)).to(getattr(core, dtype))
    numbers = core.tensor(random.standard_normal(shape))
    return (
        core.complex(numbers, numbers + 1).to(core.complex64)
        if dtype == "complex64"
        else numbers.to(getattr(core, dtype))
    )


def expected(op: str, parts: list[Any]) -> Any:
    dtype = parts[0].dtype
    if dtype in (core.float16, core.bfloat16):
        parts = [part.float() for part in parts]
    function = {
        "SUM": core.add, "AVG": core.add, "PRODUCT": core.mul, "MIN": core.minimum, "MAX": core.maximum,
        "BAND": core.bitwise_and, "BOR": core.bitwise_or, "BXOR": core.bitwise_xor,
    }[op]  # fmt: skip
    result = fold(function, parts)
    return (result / len(parts) if op == "AVG" else result).to(dtype)


def applies(op: str, dtype: str) -> bool:
    if op in ("BAND", "BOR", "BXOR"):
        return dtype in INTEGERS
    if op in ("MIN", "MAX"):
        return dtype != "complex64"
    return op != "AVG" or dtype not in INTEGERS


def reductions(rank: int, size: int) -> list[str]:
    wrong = []
    for op in dist.ReduceOp:
        for dtype in DTYPES:
            for shape in SIZES:
                tensor = value(rank, shape, dtype)
                if op is dist.ReduceOp.PREMUL_SUM or not applies(op.value, dtype):
                    with pytest.raises((TypeError, NotImplementedError)):
                        dist.all_reduce(tensor, op)
                    break
                parts = [value(r, shape, dtype) for r in range(size)]
                dist.all_reduce(tensor, op)
                if not core.equal(tensor, expected(op.value, parts)):
                    wrong.append(f"all_reduce {op} {dtype} {shape}")
                tensor = value(rank, shape, dtype)
                dist.reduce(tensor, size - 1, op)
                if not core.equal(tensor, expected(op.value, parts) if rank == size - 1 else parts[rank]):
                    wrong.append(f"reduce {op} {dtype} {shape}")
    return wrong


@pytest.mark.parametrize("size", [1, 2, 3])
def test_reductions_of_every_dtype(size: int, tmp_path: Path) -> None:
    assert run_ranks(reductions, size, tmp_path, size) == [[]] * size


def movements(rank: int, size: int) -> list[str]:
    wrong = []

    def check(name: str, got: list[Any], want: list[Any]) -> None:
        if not all(core.equal(a, b) for a, b in zip(got, want, strict=True)):
            wrong.append(f"{name} {dtype} {shape}")

    for dtype in ("float32", "bfloat16", "bool", "int64"):
        for shape in SIZES:
            parts = [value(r, shape, dtype) for r in range(size)]
            mine, root = parts[rank], size - 1
            tensor = mine.clone()
            dist.broadcast(tensor, root)
            check("broadcast", [tensor], [parts[root]])
            got = [core.zeros_like(mine) for _ in parts]
            dist.all_gather(got, mine)
            check("all_gather", got, parts)
            got = [core.zeros_like(mine) for _ in parts]
            dist.gather(mine, got if rank == root else None, dst=root)
            check("gather", got, parts if rank == root else [core.zeros_like(mine)] * size)
            tensor = core.zeros_like(mine)
            dist.scatter(tensor, parts if rank == 0 else None)
            check("scatter", [tensor], [mine])
            got = [core.zeros_like(mine) for _ in parts]
            dist.all_to_all(got, [mine.clone() for _ in parts])
            check("all_to_all", got, parts)
            whole = core.zeros((size, *shape), dtype=mine.dtype)
            dist.all_gather_into_tensor(whole, mine)
            check("all_gather_into_tensor", [whole], [core.stack(parts)])
            if dtype == "bool":
                continue
            tensor = core.zeros_like(mine)
            dist.reduce_scatter(tensor, [mine * (r + 1) for r in range(size)])
            check("reduce_scatter", [tensor], [expected("SUM", [p * (rank + 1) for p in parts])])
            dist.reduce_scatter_tensor(tensor, core.stack([mine * (r + 1) for r in range(size)]))
            check("reduce_scatter_tensor", [tensor], [expected("SUM", [p * (rank + 1) for p in parts])])
    return wrong


@pytest.mark.parametrize("size", [1, 2, 4])
def test_tensors_are_moved(size: int, tmp_path: Path) -> None:
    assert run_ranks(movements, size, tmp_path, size) == [[]] * size


def coalesced(rank: int) -> list[Any]:
    tensors = [core.full((3,), float(rank)), core.full((70_000,), rank + 1.0), core.zeros(0)]
    dist.all_reduce_coalesced(tensors)
    future = dist.all_reduce_coalesced(tensors[0], dist.ReduceOp.MAX, async_op=True)
    assert future.wait() == [tensors[0]]
    mine = [core.tensor([float(rank)]), core.tensor([[1.0, 2.0]]) + rank]
    lists = [[core.zeros(1), core.zeros(1, 2)] for _ in range(2)]
    dist.all_gather_coalesced(lists, mine)
    again = [[core.zeros(1), core.zeros(1, 2)] for _ in range(2)]
    assert len(dist.all_gather_coalesced(again, mine, async_op=True).wait()) == 4
    assert all(core.equal(a, b) for x, y in zip(lists, again, strict=True) for a, b in zip(x, y, strict=True))
    whole = core.zeros(4)
    dist.all_gather_single(whole, core.full((2,), float(rank)))
    part = core.zeros(2)
    dist.reduce_scatter_single(part, core.arange(4.0))
    return [
        [core.unique(t).tolist() for t in tensors], [[t.tolist() for t in part] for part in lists],
        whole.tolist(), part.tolist(),
    ]  # fmt: skip


def test_coalesced_and_single(tmp_path: Path) -> None:
    gathered = [[[0.0], [[1.0, 2.0]]], [[1.0], [[2.0, 3.0]]]]
    expected_of = [
        [[[1.0], [3.0], []], gathered, [0.0, 0.0, 1.0, 1.0], part] for part in ([0.0, 2.0], [4.0, 6.0])
    ]
    assert run_ranks(coalesced, 2, tmp_path) == expected_of


def failing_future(rank: int) -> str:
    with pytest.raises(RuntimeError) as error:
        dist.all_reduce_coalesced([core.ones(2 + rank)], async_op=True).wait()
    return str(error.value)


def test_a_future_holds_the_error(tmp_path: Path) -> None:
    for text in run_ranks(failing_future, 2, tmp_path):
        assert "ranks disagree" in text


def layouts(rank: int) -> list[Any]:
    base = core.arange(24.0).reshape(4, 6) * (rank + 1)
    view = base[:, 1:4].t()
    version = view._version
    dist.all_reduce(view)
    work = dist.all_reduce(base[0, :1], async_op=True)
    assert work.wait()
    assert work.is_success()
    assert work.is_completed()
    assert work.exception() is None
    with pytest.raises(RuntimeError, match="elements share memory"):
        dist.all_reduce(core.ones(1).expand(3))
    frozen = core.from_numpy(np.frombuffer(b"12345678", dtype=np.float32))
    with pytest.raises(RuntimeError, match="read-only"):
        dist.all_reduce(frozen)
    return [base.tolist(), view._version > version]


def test_views_and_written_tensors(tmp_path: Path) -> None:
    want = []
    for rank in range(2):
        base = np.arange(24.0).reshape(4, 6) * (rank + 1)
        base[:, 1:4] = np.arange(24.0).reshape(4, 6)[:, 1:4] * 3
        base[0, 0] = 0
        want.append([base.tolist(), True])
    assert run_ranks(layouts, 2, tmp_path) == want


def order_of_sums(rank: int) -> list[float]:
    numbers = [1e8, 1.0, -1e8]  # the sum depends on the order
    tensor = core.full((100_000,), numbers[rank])
    dist.all_reduce(tensor)
    return core.unique(tensor).tolist()


def test_values_are_added_in_the_order_of_the_ranks(tmp_path: Path) -> None:
    in_order = float(np.float32(np.float32(1e8) + np.float32(1)) + np.float32(-1e8))
    assert run_ranks(order_of_sums, 3, tmp_path) == [[in_order]] * 3


def queued(rank: int) -> list[float]:
    tensors = [core.full((1000,), float(i + rank)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    last = core.ones(1)
    dist.all_reduce(last)  # runs after the collectives that were begun before
    assert all(work.is_completed() for work in works)
    return [tensor[7].item() for tensor in tensors]


def test_work_that_is_queued(tmp_path: Path) -> None:
    assert run_ranks(queued, 2, tmp_path) == [[2.0 * i + 1 for i in range(20)]] * 2


def disagree(rank: int) -> list[str]:
    texts = []
    for call in (
        lambda: dist.all_reduce(core.ones(3 + rank)),
        lambda: dist.all_reduce(core.ones(3, dtype=core.float64 if rank else core.float32)),
        lambda: dist.all_reduce(core.ones(3), dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM),
        lambda: dist.broadcast(core.ones(3), rank),
        lambda: dist.all_reduce(core.ones(3)) if rank else dist.barrier(),
    ):
        tensor = core.ones(2)
        with pytest.raises(RuntimeError) as error:
            call()
        texts.append(str(error.value))
        dist.all_reduce(tensor)  # the group can be used as before
        assert tensor.tolist() == [2.0, 2.0]
    return texts


def test_ranks_that_disagree_are_told_both_lines(tmp_path: Path) -> None:
    first, second = run_ranks(disagree, 2, tmp_path)
    assert first == second
    for text, ours, theirs in zip(
        first,
        ["float32[3]", "float32[3]", "all_reduce(SUM)", "from rank 0", "barrier"],
        ["float32[4]", "float64[3]", "all_reduce(MAX)", "from rank 1", "all_reduce(SUM)"],
        strict=True,
    ):
        lines = text.splitlines()
        assert ours in lines[1]
        assert "rank 0" in lines[1]
        assert "test_collectives.py:" in lines[1]
        assert theirs in lines[2]
        assert "rank 1" in lines[2]
        assert "test_collectives.py:" in lines[2]


def killed(rank: int) -> list[Any]:
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    with pytest.raises(RuntimeError) as error:
        dist.all_reduce(core.ones(5))
    with pytest.raises(RuntimeError, match="rank 1"):
        dist.barrier()
    return [str(error.value), time.monotonic() - begun]


def test_a_rank_that_is_killed_is_named(tmp_path: Path) -> None:
    zero, one, two = run_ranks(killed, 3, tmp_path)
    assert one == "died"
    for text, _ in (zero, two):
        assert "rank 1 (process" in text
        assert "all_reduce(SUM) of float32[5]" in text


def killed_before_new_group(rank: int) -> str:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(RuntimeError) as error:
        dist.new_group([0, 1])
    return str(error.value)


def test_a_rank_that_is_killed_before_a_group_is_made_is_named(tmp_path: Path) -> None:
    assert "rank 1 (process" in run_ranks(killed_before_new_group, 2, tmp_path)[0]


def late(rank: int) -> str:
    dist.barrier()
    if rank == 1:
        time.sleep(1.0)
        return ""
    dist.group.WORLD.set_timeout(timedelta(seconds=0.2))
    with pytest.raises(RuntimeError) as error:
        dist.all_reduce(core.ones(5))
    return str(error.value)


def test_a_rank_that_is_late(tmp_path: Path) -> None:
    text, _ = run_ranks(late, 2, tmp_path)
    assert "timed out: ranks 1 did not take part within 0.2 seconds" in text


def late_at_a_barrier(rank: int, function: str, seconds: float | None) -> str:
    barrier = getattr(dist, function)
    if rank == 0:
        dist.group.WORLD.set_timeout(timedelta(seconds=0.05))
    else:
        time.sleep(0.2)
    barrier(timeout=timedelta(seconds=20))
    if rank != 0:
        world._World.store.wait(["raised"])
    with pytest.raises(RuntimeError) as error:
        barrier(timeout=None if seconds is None else timedelta(seconds=seconds))
    world._World.store.set("raised", "")
    return str(error.value)


@pytest.mark.parametrize("function", ["barrier", "monitored_barrier"])
@pytest.mark.parametrize("seconds", [None, 0.04])
def test_ranks_that_are_late_at_a_barrier(function: str, seconds: float | None, tmp_path: Path) -> None:
    for text in run_ranks(late_at_a_barrier, 3, tmp_path, function, seconds):
        assert f"timed out: ranks 1, 2 did not take part within {seconds or 0.05} seconds" in text


def leaving(rank: int) -> str:
    if rank == 1:
        return ""
    with pytest.raises(RuntimeError) as error:
        dist.all_reduce(core.ones(5))
    return str(error.value)


def test_a_rank_that_leaves(tmp_path: Path) -> None:
    text, _ = run_ranks(leaving, 2, tmp_path)
    assert "rank 1 left the group" in text or "rank 1 (process" in text


def forked(rank: int) -> int:
    dist.all_reduce(core.ones(1), async_op=True).wait()  # starts the thread of the group
    child = os.fork()
    if child == 0:
        gc.collect()
        try:
            dist.barrier()
        except RuntimeError as error:
            world._World.ranks.clear()
            world._World.default = None  # the last reference to the group, whose thread is the parent's
            os._exit(7 if "was forked from rank" in str(error) else 1)
        os._exit(2)
    dist.barrier()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_is_no_member(tmp_path: Path) -> None:
    assert run_ranks(forked, 2, tmp_path) == [7, 7]


def subgroups(rank: int) -> list[Any]:
    other_order = dist.new_group([2, 0], sort_ranks=False)
    assert dist.get_rank(other_order) == {0: 1, 1: -1, 2: 0}[rank]
    pair = dist.new_group([2, 0])
    both = dist.new_group([1, 2])
    tensor = core.tensor([float(rank)])
    if rank != 1:
        dist.all_reduce(tensor, group=pair)
        assert dist.get_world_size(pair) == 2
        assert dist.get_process_group_ranks(pair) == [0, 2]
        assert dist.get_global_rank(pair, 1) == 2
        assert dist.get_group_rank(pair, 2) == 1
    else:
        assert dist.get_rank(pair) == -1
        with pytest.warns(UserWarning, match="not in the group"):
            dist.all_reduce(tensor, group=pair)
    if rank:
        dist.broadcast(tensor, 2, group=both)
    return tensor.tolist()


def test_groups_of_some_ranks(tmp_path: Path) -> None:
    assert run_ranks(subgroups, 3, tmp_path) == [[2.0], [2.0], [2.0]]


def objects(rank: int) -> list[Any]:
    listed = [{"rank": rank}, "x" * 10 * rank]
    dist.broadcast_object_list(listed, 1)
    gathered: list[Any] = [None, None]
    dist.all_gather_object(gathered, "r" * rank)
    at_root: list[Any] = [None, None]
    dist.gather_object(rank, at_root if rank == 0 else None)
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, ["a", "b"] if rank == 0 else None)
    return [listed, gathered, at_root, mine]


def test_objects(tmp_path: Path) -> None:
    first, second = run_ranks(objects, 2, tmp_path)
    assert first[:2] == second[:2] == [[{"rank": 1}, "x" * 10], ["", "r"]]
    assert (first[2:], second[2:]) == ([[0, 1], ["a"]], [[None, None], ["b"]])


def unpicklable(rank: int) -> list[Any]:
    function: Any = (lambda: 1) if rank == 0 else 1
    raised = []
    for call in (
        lambda: dist.all_gather_object([None, None], function),
        lambda: dist.broadcast_object_list([function], 0),
    ):
        try:
            call()
        except Exception as error:
            raised.append(str(error))
    dist.barrier()  # the group can still be used
    return raised


def test_an_object_that_cannot_be_pickled_raises_on_all_ranks(tmp_path: Path) -> None:
    first, second = run_ranks(unpicklable, 2, tmp_path)
    assert [text.count("pickle") for text in first] == [1, 1]
    assert second == ["the object of rank 0 cannot be pickled; the error is raised on that rank"] * 2


def leaks(rank: int, path: str) -> list[int]:
    dist.destroy_process_group()
    counts = []
    for i in range(3):
        store = dist.FileStore(f"{path}-{i}")
        dist.init_process_group(store=store, rank=rank, world_size=2)
        dist.all_reduce(core.ones(1000), async_op=True).wait()
        dist.destroy_process_group()
        lines = Path("/proc/self/maps").read_text()
        counts.append(len(os.listdir("/proc/self/fd")) + 1000 * lines.count("rushlight-group"))
    return counts


def again(rank: int, port: int) -> int:
    dist.destroy_process_group()
    for _ in range(10):
        address = f"tcp://localhost:{port}"
        dist.init_process_group("shm", address, rank=rank, world_size=2, timeout=timedelta(seconds=20))
        dist.barrier()
        if rank == 0:
            time.sleep(0.02)  # rank 1 starts again while rank 0 still serves the store
        dist.destroy_process_group()
    return rank


def test_groups_are_made_again_on_one_port(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert run_ranks(again, 2, tmp_path, port) == [0, 1]


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    for counts in run_ranks(leaks, 2, tmp_path, str(tmp_path / "group")):
        assert len(set(counts)) == 1
        assert counts[0] < 1000


def arguments(rank: int) -> None:
    tensor = core.ones(4)
    for error, call in (
        (TypeError, lambda: dist.all_reduce([tensor])),
        (TypeError, lambda: dist.all_reduce(tensor, "sum")),
        (ValueError, lambda: dist.broadcast(tensor, 5)),
        (ValueError, lambda: dist.all_gather([tensor], tensor)),
        (ValueError, lambda: dist.all_gather([tensor, core.ones(3)], tensor)),
        (TypeError, lambda: dist.all_gather([tensor, tensor.double()], tensor)),
        (ValueError, lambda: dist.scatter(tensor, [tensor, tensor] if rank else None, src=0)),
        (ValueError, lambda: dist.reduce_scatter_tensor(core.ones(1), core.ones(3))),
        (ValueError, lambda: dist.init_process_group("shm")),
        (ValueError, lambda: dist.new_group([0, 9])),
        (ValueError, lambda: dist.all_gather_single(core.ones(9), tensor)),
        (TypeError, lambda: dist.all_reduce_coalesced([tensor, 3])),
        (ValueError, lambda: dist.all_gather_coalesced([[tensor]], [tensor])),
        (ValueError, lambda: dist.all_gather_coalesced([[tensor], []], [tensor])),
        (ValueError, lambda: dist.all_reduce(core.empty(2, device="meta"))),
    ):
        with pytest.raises(error):
            call()
    dist.barrier()


def test_arguments(tmp_path: Path) -> None:
    run_ranks(arguments, 2, tmp_path)
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.all_reduce(core.ones(1))
