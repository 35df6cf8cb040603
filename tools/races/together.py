"""Use shared objects from several threads at the same time, under the thread sanitizer.

The program uses operators, memory, backward passes, hooks, weak references, streams, a loader's threads, and collectives.
Results are compared, so that the program also fails if they are wrong. The sanitizer does not check kernels, memory that two
processes share, or a process that was forked while other threads ran.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import traceback
import weakref
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import rushlight_autograd
import rushlight_core as core
import rushlight_nn as nn
from rushlight_core import devices
from rushlight_data import DataLoader, Dataset
from rushlight_multiprocessing import distributed as dist
from rushlight_nn.layers.distributed import DistributedDataParallel
from rushlight_testing.native import compile_cpp, compile_plugin

THREADS = 4
ROUNDS = 5


T = TypeVar("T")


def present(value: T | None) -> T:
    """Return a value that must not be None."""
    assert value is not None
    return value


def at_once(work: Callable[[int], None], count: int = THREADS) -> None:
    """Run a function in several threads that begin together, and raise what one of them raises."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def operators() -> None:
    """Run kernels on several threads, large ones without the GIL, and small ones in operators.cpp."""
    shared = core.rand(300, 300)
    want = (shared @ shared).sum().item()

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            assert abs((shared @ shared).sum().item() - want) <= 1e-3 * abs(want)
            view = shared.t()[number:, 1:]
            assert (
                view.exp().sort().values.shape == view.cumsum(0).shape == core.rand(300 - number, 299).shape
            )

    at_once(work)

    options = ["-pthread", "-Wl,--no-as-needed"]
    for package in (rushlight_autograd, core):
        files = package.__path__[0]
        options += [f"-isystem{files}/include", f"-L{files}/lib", f"-Wl,-rpath,{files}/lib"]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "operators"
        source = Path(__file__).parent / "operators.cpp"
        compile_cpp(source, program, [*options, "-lrushlight_autograd", "-lrushlight"])
        for allocator in ("malloc", "caching"):
            subprocess.run([program], check=True, env={**os.environ, "RUSHLIGHT_CPU_ALLOCATOR": allocator})


def backward_passes() -> None:
    """Run passes at the same time that add to the gradients of one model, and passes with branches."""
    model = nn.Sequential(nn.Linear(40, 60), nn.Tanh(), nn.Linear(60, 5))
    x = core.rand(16, 40)
    model(x).sum().backward()
    one = [present(p.grad).clone() for p in model.parameters()]
    model.zero_grad()

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            left, right = model(x), model(x)
            with rushlight_autograd.parallel_branches(bool(number % 2)):
                (left.sum() + right.sum()).backward()

    at_once(work)
    for parameter, gradient in zip(model.parameters(), one, strict=True):
        wanted = gradient * (2 * ROUNDS * THREADS)
        assert (present(parameter.grad) - wanted).abs().max() <= 1e-3 * wanted.abs().max()


def hooks() -> None:
    """Add and remove hooks while other threads run backward passes through the same graph."""
    x = core.rand(20, requires_grad=True)
    y = x * 2
    total = (y * y).sum()
    calls: list[Any] = []

    def work(number: int) -> None:
        for _ in range(10 * ROUNDS):
            if number % 2:
                total.backward(retain_graph=True)
                continue
            handles = [
                x.register_hook(calls.append),
                x.register_post_accumulate_grad_hook(calls.append),
                y.register_hook(calls.append),
                present(y.grad_fn).register_prehook(calls.append),
                present(y.grad_fn).register_hook(lambda *_: calls.append(None)),
            ]
            y.retain_grad()
            for handle in handles:
                handle.remove()

    at_once(work)
    assert (present(x.grad) - 8 * x * 10 * ROUNDS * (THREADS // 2)).abs().max() < 0.1


def weak_references() -> None:
    """Find tensors by weak references while backward passes drop them without Python's lock."""
    found: list[list[weakref.ref[Any]]] = [[]]
    weight = core.ones(3, requires_grad=True)

    def work(number: int) -> None:
        for _ in range(20 * ROUNDS):
            if number % 2:
                for reference in reversed(found[0]):
                    if (tensor := reference()) is not None:
                        assert tensor.detach_() is tensor
                        assert tensor.view(3).tolist() == [1, 1, 1]
                continue
            tensor, references = weight, []
            for _ in range(20):
                tensor = tensor * weight
                references.append(weakref.ref(tensor))
            found[0] = references
            tensor = tensor.sum()
            tensor.backward()

    at_once(work)


def streams() -> None:
    """Queue work on streams, order them by events, and drop memory that other streams use, on a device in host memory."""
    with tempfile.TemporaryDirectory() as folder:
        devices.load_backend(compile_plugin("toy_device", Path(folder)))
    shared = core.ones(500, device="toy:1")  # core's allocator manages its memory
    devices.synchronize("toy:1")
    events: list[Any] = [None] * THREADS

    def work(number: int) -> None:
        stream = core.Stream("toy:1")
        for _ in range(ROUNDS):
            with stream:
                product = shared * number + 1
                events[number] = stream.record_event()
            if (event := events[(number + 1) % THREADS]) is not None:
                event.wait()
                event.query()
            product.record_stream(second := core.Stream("toy:1"))
            with second:
                second.wait_stream(stream)
                assert product.cpu().tolist() == [number + 1] * 500
            del product
            devices.memory_stats("toy:1")
            if number == 0:
                devices.empty_cache("toy:1")

    at_once(work)


class Samples(Dataset):
    def __init__(self) -> None:
        self.table = core.rand(64, 500)

    def __len__(self) -> int:
        return 64

    def __getitem__(self, i: int) -> Any:
        return self.table[i].clone().sort().values, i


def loaders() -> None:
    """Train on batches that threads read, of several loaders at the same time."""
    dataset = Samples()
    want = dataset.table.sum().item()

    def work(number: int) -> None:
        loader = DataLoader(dataset, 4, num_workers=2, transport="threads", shuffle=bool(number % 2))
        for _ in range(2):
            total = sum(batch.sum().item() for batch, _ in loader)
            assert abs(total - want) <= 1e-3 * want
        for _ in loader:
            break  # while batches are being read

    at_once(work, 2)


def reduce_and_train(number: int) -> None:
    works = [
        present(dist.all_reduce(core.full((5000,), float(number + i)), async_op=True)) for i in range(20)
    ]
    for i, work in enumerate(works):
        assert work.wait()
        assert work.result()[0].sum().item() == 5000 * (2 * i + 1)
    broadcast = present(dist.broadcast(core.ones(100), 0, async_op=True))
    for future in [broadcast.get_future() for _ in range(3)]:
        future.wait()
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(30, 200), nn.Tanh(), nn.Linear(200, 3)), bucket_cap_mb=0.001
    )
    optimizer = nn.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(ROUNDS):
        optimizer.zero_grad()
        model(core.rand(8, 30)).square().sum().backward()
        optimizer.step()


def send_and_receive(number: int, group: Any) -> None:
    other = 1 - number
    for _ in range(10 * ROUNDS):
        total, sent, got = core.ones(3000), core.full((50_000,), float(number)), core.empty(50_000)
        messages = [dist.isend(sent, other, group=group), dist.irecv(got, other, group=group)]
        dist.all_reduce(total, group=group)
        for message in messages:
            present(message).wait()
        assert total.sum().item() == 6000
        assert got.sum().item() == 50_000 * other


def rank(number: int, store: Any) -> None:
    core.set_num_threads(2)
    dist.init_process_group("shm", store=store, rank=number, world_size=2, timeout=timedelta(seconds=120))
    second = dist.new_group()
    parts = (lambda: reduce_and_train(number), lambda: send_and_receive(number, second))
    at_once(lambda part: parts[part](), 2)
    dist.barrier()
    dist.destroy_process_group()


def collectives() -> None:
    """Run collectives, messages and a data-parallel module on two threads of each of two processes."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for number in range(2):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    rank(number, dist.FileStore(os.path.join(folder, "store"), 2))
                    status = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stderr.flush()
                    os._exit(status)
            children.append(child)
        codes = [os.waitpid(child, 0)[1] for child in children]
    assert codes == [0, 0], codes


PARTS = {
    "collectives": collectives,  # this comes first, because it forks, which needs a single thread
    "operators": operators,
    "backward": backward_passes,
    "hooks": hooks,
    "weak references": weak_references,
    "streams": streams,
    "loaders": loaders,
}


def main(names: list[str]) -> None:
    sys.setswitchinterval(1e-4)
    core.set_num_threads(3)
    for name in names or PARTS:
        PARTS[name]()
        print(f"{name}: done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
