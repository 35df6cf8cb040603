"""A process that trains one model on one library in one mode, step by step as it is told.

Processes of several libraries live side by side and take turns, so that what slows the machine slows all of them. The
interpreter may be that of another environment; the models' file imports `torch`, which means rushlight where that is asked
for.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .catalogue import ENTRIES
from .protocol import Request, Timing

# What a mode switches on, joined by "+": "default", "channels_last", "fused", "channels_last+fused", "compile".
SWITCHES = ("channels_last", "fused", "compile")

Step = Callable[[], float]


def prepare(request: Request) -> Step:
    """Builds model, data and optimizer; calling the result takes one training step and reads the loss back."""
    if request.library == "rushlight":
        import rushlight.as_torch

        rushlight.as_torch.install()
    import torch

    from .workloads import WORKLOADS

    switches = set() if request.mode == "default" else set(request.mode.split("+"))
    if unknown := switches - set(SWITCHES):
        raise ValueError(f"mode {request.mode!r}: no such switch: {', '.join(sorted(unknown))}")
    torch.set_num_threads(request.threads)
    torch.manual_seed(0)
    entry, workload = ENTRIES[request.workload], WORKLOADS[request.workload]
    model = workload.build()
    batch = workload.batch(request.size or entry.size)
    if "channels_last" in switches:
        if not entry.images:
            raise ValueError(f"mode {request.mode!r}: {request.workload} has no images")
        model = model.to(memory_format=torch.channels_last)
        batch = (batch[0].to(memory_format=torch.channels_last), *batch[1:])
    fused = {"fused": True} if "fused" in switches else {}
    if entry.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, **fused)
    else:
        kind = torch.optim.AdamW if entry.optimizer == "adamw" else torch.optim.Adam
        optimizer = kind(model.parameters(), lr=1e-4, **fused)
    called = torch.compile(model) if "compile" in switches else model

    def step() -> float:
        optimizer.zero_grad()
        loss = workload.loss(called, batch)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def measured(step: Step) -> Timing:
    """One step with what it took."""
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    cpu, wall = time.process_time(), time.perf_counter()
    loss = step()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Timing(wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults, loss)


def peak_memory() -> int:
    """The largest resident memory so far, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no line VmHWM")


def serve(connection: Connection, request: Request) -> None:
    """Answers "step" with a `Timing` and "memory" with bytes until the other end closes."""
    try:
        step = prepare(request)
        gc.collect()
        connection.send(("answer", os.getpid()))
        while True:
            command = connection.recv()
            connection.send(("answer", measured(step) if command == "step" else peak_memory()))
    except EOFError:
        pass  # the parent is done
    except Exception as error:
        connection.send(("error", f"{type(error).__name__}: {error}"))


def main(arguments: list[str]) -> None:
    connection = Connection(int(arguments[0]))
    request: Any = connection.recv()
    serve(connection, request)


if __name__ == "__main__":
    main(sys.argv[1:])
