"""Messages between two ranks."""

from __future__ import annotations

import os
import re
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ranks import run_ranks

import rushlight_core as core
from rushlight_multiprocessing import distributed as dist

SHAPES = [(), (0,), (3, 5), (70_001,)]  # the last is longer than a ring
DTYPES = ["float32", "float64", "bfloat16", "bool", "uint8", "int64", "complex64", "float8_e4m3fn"]


def value(number: int, shape: tuple[int, ...], dtype: str) -> Any:
    random = np.random.default_rng(number)
    return core.tensor(random.integers(0, 100, shape)).to(getattr(core, dtype))


def sent_and_received(rank: int) -> list[str]:
    wrong = []
    for dtype in DTYPES:
        for number, shape in enumerate(SHAPES):
            tensor = value(number, shape, dtype)
            if rank == 0:
                dist.send(tensor, 1)
                tensor.zero_()  # this does not change the message
            else:
                got = core.zeros(shape, dtype=tensor.dtype)
                version = got._version
                assert dist.recv(got, 0) == 0
                assert got._version > version
                if not core.equal(got, tensor):
                    wrong.append(f"{dtype} {shape}")
    return wrong


def test_every_dtype_and_size(tmp_path: Path) -> None:
    assert run_ranks(sent_and_received, 2, tmp_path) == [[], []]


def strided(rank: int) -> list[Any]:
    base = core.arange(24.0).reshape(4, 6)
    if rank == 0:
        dist.send(base.t()[1:4], 1)
        return []
    target = core.zeros(6, 4)
    dist.recv(target.t()[:, 1:4], 0)
    with pytest.raises(RuntimeError, match="elements share memory"):
        dist.irecv(core.ones(1).expand(3), 0)
    return target.tolist()


def test_views(tmp_path: Path) -> None:
    want = np.zeros((6, 4))
    want.T[:, 1:4] = np.arange(24.0).reshape(4, 6).T[1:4].reshape(4, 3)
    assert run_ranks(strided, 2, tmp_path)[1] == want.tolist()


def exchanged(rank: int, count: int) -> list[Any]:
    """Send to every rank, including this one, before receiving from any."""
    size = dist.get_world_size()
    mine = [core.full((count,), float(10 * rank + to)) for to in range(size)]
    theirs = [core.zeros(count) for _ in range(size)]
    ops = [dist.P2POp(dist.isend, mine[to], to) for to in range(size)]
    ops += [dist.P2POp(dist.irecv, theirs[source], source) for source in range(size)]
    works = dist.batch_isend_irecv(ops)
    for work in works:
        assert work.wait()
        assert work.is_completed()
        assert work.is_success()
    assert works[-1].result() == [theirs[-1]]
    return [core.unique(part).tolist() for part in theirs]


@pytest.mark.parametrize("count", [5, 500_000])
def test_all_ranks_send_before_they_receive(count: int, tmp_path: Path) -> None:
    assert run_ranks(exchanged, 3, tmp_path, count) == [
        [[float(10 * source + rank)] for source in range(3)] for rank in range(3)
    ]


def small_first(rank: int) -> list[float]:
    tensor = core.full((3,), float(rank))
    dist.send(tensor, 1 - rank)  # both ranks send first: a message that fits into the memory does not wait
    dist.recv(tensor, 1 - rank)
    return tensor.tolist()


def test_small_messages_do_not_wait_for_the_receiver(tmp_path: Path) -> None:
    assert run_ranks(small_first, 2, tmp_path) == [[1.0] * 3, [0.0] * 3]


def tagged(rank: int) -> list[Any]:
    if rank == 0:
        works = [dist.isend(core.full((60_000,), float(tag)), 1, tag=tag) for tag in (1, 2, 3)]
        dist.send(core.tensor([4.5]), 1, tag=2)
        for work in works:
            work.wait()
        return []
    got = [core.zeros(60_000) for _ in range(3)]
    again = core.zeros(1)
    early = dist.irecv(got[2], 0, tag=3)
    dist.recv(got[1], 0, tag=2)
    dist.recv(again, 0, tag=2)
    dist.recv(got[0], 0, tag=1)
    early.wait()
    return [*(core.unique(part).tolist() for part in got), again.tolist()]


def test_tags_choose_among_messages(tmp_path: Path) -> None:
    assert run_ranks(tagged, 2, tmp_path)[1] == [[1.0], [2.0], [3.0], [4.5]]


def ordered(rank: int) -> list[float]:
    count = 2000
    if rank == 0:
        for work in [dist.isend(core.tensor([float(i)]), 1) for i in range(count)]:
            work.wait()
        return []
    got = [core.zeros(1) for _ in range(count)]
    for work in [dist.irecv(part, 0) for part in got]:
        work.wait()
    return [part.item() for part in got]


def test_messages_of_one_tag_arrive_in_order(tmp_path: Path) -> None:
    assert run_ranks(ordered, 2, tmp_path)[1] == [float(i) for i in range(2000)]


def from_any(rank: int) -> list[Any]:
    if rank:
        dist.send(core.tensor([float(rank)]), 0)
        return []
    got = []
    for _ in range(2):
        tensor = core.zeros(1)
        got.append([dist.recv(tensor), tensor.item()])
    return sorted(got)


def test_a_message_of_any_rank(tmp_path: Path) -> None:
    assert run_ranks(from_any, 3, tmp_path)[0] == [[1, 1.0], [2, 2.0]]


def in_a_group(rank: int) -> list[Any]:
    pair = dist.new_group([2, 0], sort_ranks=False)
    tensor = core.tensor([float(rank)])
    if rank == 1:
        with pytest.warns(UserWarning, match="not in the group"):
            assert dist.recv(tensor, 0, group=pair) == -1
        with pytest.warns(UserWarning, match="not in the group"):
            assert dist.isend(tensor, 0, group=pair) is None
        return []
    if rank == 2:
        dist.send(tensor, group=pair, group_dst=1)
        return []
    return [dist.recv(tensor, group=pair, group_src=0), tensor.item()]


def test_ranks_of_a_group(tmp_path: Path) -> None:
    assert run_ranks(in_a_group, 3, tmp_path)[0] == [2, 2.0]


def objects(rank: int) -> list[Any]:
    if rank == 0:
        dist.send_object_list([{"a": 1}, "x" * 300_000, None], 1)
        dist.send_object_list(["second"], 1, use_batch=True)
        return []
    first: list[Any] = [None] * 3
    assert dist.recv_object_list(first, 0) == 0
    second = [None]
    assert dist.recv_object_list(second) == 0
    return [first, second]


def test_objects(tmp_path: Path) -> None:
    assert run_ranks(objects, 2, tmp_path)[1] == [[{"a": 1}, "x" * 300_000, None], ["second"]]


def misfit(rank: int) -> list[str]:
    if rank == 0:
        dist.send(core.ones(70_000), 1)
        dist.send(core.ones(3, dtype=core.int64), 1, tag=5)
        dist.send(core.ones(3), 1)
        return []
    texts = []
    for tag in (0, 5):
        with pytest.raises(RuntimeError) as error:
            dist.recv(core.ones(3), 0, tag=tag)
        texts.append(str(error.value))
    tensor = core.zeros(3)
    dist.recv(tensor, 0)
    assert tensor.tolist() == [1.0] * 3
    return texts


def test_tensors_that_do_not_fit_are_told_both_lines(tmp_path: Path) -> None:
    for text, sent in zip(run_ranks(misfit, 2, tmp_path)[1], ["float32[70000]", "int64[3]"], strict=True):
        lines = text.splitlines()
        assert lines[1].startswith(f"  rank 0: send of {sent} (")
        assert lines[2].startswith("  rank 1: recv of float32[3] from rank 0 with tag")
        assert all("test_messages.py:" in line for line in lines[1:3])


def killed(rank: int) -> str:
    if rank == 1:
        dist.send(core.ones(3), 0)
        os.kill(os.getpid(), signal.SIGKILL)
    got = core.zeros(3)
    dist.recv(got, 1)  # the message that was sent before the end of the rank arrives
    assert got.tolist() == [1.0] * 3
    work = dist.irecv(got)
    with pytest.raises(RuntimeError) as error:
        dist.recv(got, 1)
    with pytest.raises(RuntimeError, match="rank 1"):
        work.wait()
    with pytest.raises(RuntimeError, match="rank 1"):
        dist.barrier()
    return str(error.value)


def test_a_rank_that_is_killed_is_named(tmp_path: Path) -> None:
    text, died = run_ranks(killed, 2, tmp_path)
    assert died == "died"
    assert "rank 1 (process" in text
    assert "recv of float32[3] from rank 1 with tag 0" in text or "from any rank" in text


def killed_receiver(rank: int) -> str:
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(RuntimeError) as error:
        dist.send(core.ones(500_000), 1)
    return str(error.value)


def test_a_receiver_that_is_killed_is_named(tmp_path: Path) -> None:
    text = run_ranks(killed_receiver, 2, tmp_path)[0]
    assert "rank 1 (process" in text
    assert "send of float32[500000] to rank 1" in text


def leaving(rank: int) -> str:
    if rank == 1:
        dist.send(core.ones(500_000), 0)
        return ""
    got = core.zeros(500_000)
    dist.recv(got, 1)
    assert got.sum().item() == 500_000
    with pytest.raises(RuntimeError) as error:
        dist.recv(got, 1)
    return str(error.value)


def test_a_rank_that_leaves(tmp_path: Path) -> None:
    text = run_ranks(leaving, 2, tmp_path)[0]
    assert "rank 1 left the group before" in text or "rank 1 (process" in text


def late(rank: int) -> str:
    dist.barrier()
    if rank == 1:
        time.sleep(0.6)
        return ""
    dist.group.WORLD.set_timeout(timedelta(seconds=0.1))
    with pytest.raises(RuntimeError) as error:
        dist.recv(core.ones(5), 1)
    return str(error.value)


def test_a_message_that_is_late(tmp_path: Path) -> None:
    assert "timed out after 0.1 seconds" in run_ranks(late, 2, tmp_path)[0]


def destroyed(rank: int) -> str:
    work = dist.irecv(core.zeros(2), 1 - rank)
    sent = dist.isend(core.ones(2), 1 - rank, tag=1)
    dist.barrier()
    dist.destroy_process_group()
    sent.wait()
    with pytest.raises(RuntimeError) as error:
        work.wait()
    return str(error.value)


def test_receives_end_with_the_group(tmp_path: Path) -> None:
    # The error of a rank depends on which rank leaves first.
    for text in run_ranks(destroyed, 2, tmp_path):
        assert re.search("the group was destroyed|left the group before|ended before", text)


def beside_collectives(rank: int) -> list[float]:
    got = core.zeros(200_000)
    work = dist.irecv(got, 1 - rank)
    total = core.ones(300_000)
    reduced = dist.all_reduce(total, async_op=True)
    dist.send(core.full((200_000,), float(rank)), 1 - rank)
    future = reduced.get_future().then(lambda done: done.value()[0].sum().item())
    work.wait()
    return [future.wait(), got.mean().item()]


def test_beside_collectives(tmp_path: Path) -> None:
    assert run_ranks(beside_collectives, 2, tmp_path) == [[600_000.0, 1.0], [600_000.0, 0.0]]


def arguments(rank: int) -> None:
    tensor = core.ones(4)
    for error, call in (
        (TypeError, lambda: dist.send([tensor], 1 - rank)),
        (ValueError, lambda: dist.send(tensor)),
        (ValueError, lambda: dist.send(tensor, 7)),
        (ValueError, lambda: dist.send(tensor, rank)),
        (ValueError, lambda: dist.recv(tensor, 0, group_src=0)),
        (ValueError, lambda: dist.irecv(tensor, group_src=2)),
        (ValueError, lambda: dist.isend(core.empty(2, device="meta"), 1 - rank)),
        (ValueError, lambda: dist.P2POp(dist.all_reduce, tensor, 0)),
        (TypeError, lambda: dist.P2POp(dist.isend, 3, 0)),
        (ValueError, lambda: dist.batch_isend_irecv([])),
        (ValueError, lambda: dist.batch_isend_irecv([tensor])),
        (ValueError, lambda: dist.send_object_list([], 1 - rank)),
        (ValueError, lambda: dist.recv_object_list([None], 1 - rank, device="cuda")),
    ):
        with pytest.raises(error):
            call()
    name = repr(dist.P2POp(dist.irecv, tensor, 1 - rank, tag=2))
    assert f"irecv pg=world, group_src={1 - rank}, group_dst={rank}" in name
    dist.barrier()


def test_arguments(tmp_path: Path) -> None:
    run_ranks(arguments, 2, tmp_path)
