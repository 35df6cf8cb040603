"""Kill workers, senders, receivers and ranks at random, and check that no resources leak: `python -m faults.soak --minutes
30`.

All rounds run in one process. After each, it must have no child, and as many descriptors, mappings of shared memory and
threads as after the warm-up; its private memory must not grow by more than `GROWTH`.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import rushlight as torch
import rushlight.distributed as dist
import rushlight.multiprocessing as mp
from rushlight.utils.data import DataLoader

WARM_UP = 30  # rounds
GROWTH = 32 << 20  # in bytes of private memory
FORK = mp.get_context("fork")


class Samples:
    """Samples of random sizes, whose reading takes random times."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, i: int) -> Any:
        time.sleep(random.random() * 0.004)
        return torch.full((random.choice([8, 1000, 100_000]),), float(i))


def children() -> list[int]:
    """Return the children of this process."""
    text = "".join((task / "children").read_text() for task in Path("/proc/self/task").iterdir())
    return [int(pid) for pid in text.split()]


def kill_later(pids: list[int], seconds: float) -> threading.Timer:
    """Kill one of the processes after a random time."""

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(random.choice(pids), random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV]))

    timer = threading.Timer(seconds, kill)
    timer.start()
    return timer


def loader() -> str:
    """Read an epoch during which a worker is killed."""
    batches = iter(DataLoader(Samples(), 2, num_workers=2, collate_fn=list, timeout=5))
    timer = kill_later(children(), random.random() * 0.15)
    try:
        for batch in batches:
            assert float(batch[0][0]) % 2 == 0
            if random.random() < 0.02:
                return "left"
        return "read"
    except RuntimeError as error:
        if "SIG" not in str(error):
            raise
        return "noticed"
    finally:
        timer.join()
        del batches


def _put(queue: Any) -> None:
    for i in range(200):
        queue.put([torch.full((random.choice([4, 50_000]),), float(i)), "x" * random.choice([1, 100_000])])


def sender() -> str:
    """Receive from a queue whose sender is killed."""
    queue = FORK.Queue()
    process = FORK.Process(target=_put, args=(queue,))
    process.start()
    timer = kill_later([process.pid], random.random() * 0.1)
    held: list[Any] = []  # keep the newest tensors
    last = -1.0
    try:
        while True:
            tensor, _ = queue.get(timeout=0.3)
            assert float(tensor[0]) == last + 1
            last += 1
            held = [*held[-20:], tensor]
    except Exception as error:
        result = type(error).__name__
    timer.join()
    process.join()
    queue.close()
    return result


def receiver() -> str:
    """Put into a queue whose receiver is killed."""
    queue = FORK.Queue()
    process = FORK.Process(target=lambda: [queue.get() for _ in range(1000)])
    process.start()
    timer = kill_later([process.pid], random.random() * 0.05)
    for i in range(50):
        queue.put(torch.full((random.choice([4, 50_000]),), float(i)))
    timer.join()
    process.join()
    queue.cancel_join_thread()
    queue.close()
    return "put"


def _rank(folder: str, rank: int) -> None:
    dist.init_process_group(
        "shm", init_method=f"file://{folder}/meet", rank=rank, world_size=3, timeout=timedelta(seconds=10)
    )
    tensor = torch.ones(50_000)
    for _ in range(10_000):
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        assert float(tensor[0]) == 1.0
        following, previous = (rank + 1) % 3, (rank - 1) % 3
        received = torch.zeros(50_000)
        ops = [dist.P2POp(dist.isend, tensor, following), dist.P2POp(dist.irecv, received, previous)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert float(received[-1]) == 1.0


def ranks() -> str:
    """Reduce and send in a group in which a rank is killed; this process is rank 0."""
    with tempfile.TemporaryDirectory() as folder:
        others = [FORK.Process(target=_quiet_rank, args=(folder, rank)) for rank in (1, 2)]
        for process in others:
            process.start()
        timer = kill_later([process.pid for process in others], 0.1 + random.random() * 0.2)
        try:
            _rank(folder, 0)
            result = "ended"
        except RuntimeError as error:
            if "rank" not in str(error):
                raise
            result = "noticed"
        timer.join()
        for process in others:
            process.join()
        if dist.is_initialized():
            dist.destroy_process_group()
    return result


def _quiet_rank(folder: str, rank: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # rank 0 gets the same error
    _rank(folder, rank)


SCENES: list[Callable[[], str]] = [loader, sender, receiver, ranks]


def held() -> dict[str, int]:
    """Count the resources of this process."""
    gc.collect()
    mp.empty_cache()
    maps = Path("/proc/self/maps").read_text().splitlines()
    return {
        "children": len(children()),
        "descriptors": len(os.listdir("/proc/self/fd")) - 1,
        "mappings of shared memory": sum("memfd:rushlight" in line for line in maps),
        "threads": threading.active_count(),
        "files in /dev/shm": len(os.listdir("/dev/shm")),
    }


def _grown(limits: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Return the counts above their limits. Wait up to two seconds, since threads of closed queues end after the round."""
    end = time.monotonic() + 2
    while True:
        grown = {what: (limits[what], count) for what, count in held().items() if count > limits[what]}
        if not grown or time.monotonic() > end:
            return grown
        time.sleep(0.01)


def private_bytes() -> int:
    """Return the private memory of this process."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_")) << 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    random.seed(seed)
    print(f"seed {seed}")
    end = time.monotonic() + 60 * options.minutes
    seen: Counter[str] = Counter()
    limits: dict[str, int] = {}
    rounds, memory, longest = 0, 0, 0.0
    while time.monotonic() < end:
        scene = SCENES[rounds % len(SCENES)]
        begun = time.monotonic()
        result = scene()
        longest = max(longest, time.monotonic() - begun)
        seen[f"{scene.__name__} {result}"] += 1
        rounds += 1
        if rounds <= WARM_UP:
            time.sleep(0.1)
            limits = {what: max(count, limits.get(what, 0)) for what, count in held().items()}
            memory = private_bytes()
            continue
        grown = _grown(limits)
        if grown or private_bytes() > memory + GROWTH:
            print(f"round {rounds}, {scene.__name__}: {grown}, {private_bytes() - memory} bytes more")
            return 1
    print(f"{rounds} rounds, the longest {longest:.1f} s: {dict(sorted(seen.items()))}")
    print(
        f"held after the last round: {held()}; private memory grew by {(private_bytes() - memory) / 1e6:.1f} MB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
