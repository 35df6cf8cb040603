"""Measure two processes that train one model, relative to one process: Hogwild, and the data-parallel module."""

from __future__ import annotations

import importlib
import tempfile
import time
from typing import Any

_BATCH = 64


def _model(torch: Any) -> Any:
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 10))


def _train(torch: Any, model: Any, steps: int, seed: int) -> None:
    """Train, and check that the loss does not grow."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        x = torch.randn(_BATCH, 256, generator=generator)
        optimizer.zero_grad()
        loss = (model(x) - x[:, :10]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.item()))
    assert losses[-1] < 1.1 * losses[0], losses


def _hogwild(module: str, model: Any, steps: int, seed: int, ready: Any, go: Any) -> None:
    torch = importlib.import_module(module)
    torch.set_num_threads(1)
    _train(torch, _model(torch), 3, seed)  # the first steps load libraries, and do not count
    ready.release()
    go.wait()
    _train(torch, model, steps, seed)


def _parallel(module: str, folder: str, size: int, rank: int, steps: int, ready: Any, go: Any) -> None:
    torch = importlib.import_module(module)
    dist = importlib.import_module(f"{module}.distributed")
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/{size}", size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    model = torch.nn.parallel.DistributedDataParallel(_model(torch))
    _train(torch, model, 3, rank)
    ready.release()
    go.wait()
    _train(torch, model, steps, rank)
    dist.barrier()
    dist.destroy_process_group()


def _seconds(module: str, target: Any, arguments: Any, count: int) -> float:
    """Return the time from the moment in which all processes are ready until all have ended."""
    context = importlib.import_module(f"{module}.multiprocessing").get_context("spawn")
    ready, go = context.Semaphore(0), context.Event()
    processes = [
        context.Process(target=target, args=(module, *arguments(number), ready, go))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        while not ready.acquire(timeout=1.0):
            if any(process.exitcode for process in processes):
                raise RuntimeError("a training process ended before the training began")
    begun = time.perf_counter()
    go.set()
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a training process ended with exit code {process.exitcode}")
    return time.perf_counter() - begun


def hogwild(send: Any, module: str, quick: bool) -> None:
    """Measure the samples per second of two processes with shared parameters, relative to one process."""
    torch = importlib.import_module(module)
    steps = 20 if quick else 400
    took = []
    for count in (1, 2):
        model = _model(torch).share_memory()

        def arguments(seed: int, model: Any = model) -> tuple[Any, ...]:
            return model, steps, seed

        took.append(_seconds(module, _hogwild, arguments, count))
    send(2 * took[0] / took[1])


def data_parallel(send: Any, module: str, quick: bool) -> None:
    """Measure the samples per second of two ranks that sum their gradients, relative to one process."""
    steps = 20 if quick else 400
    took = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, 2):

            def arguments(rank: int, count: int = count) -> tuple[Any, ...]:
                return folder, count, rank, steps

            took.append(_seconds(module, _parallel, arguments, count))
    send(2 * took[0] / took[1])
