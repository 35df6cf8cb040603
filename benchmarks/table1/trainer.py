"""A process that trains one model with one library in one mode, one step per request.

Processes of several libraries run side by side and take turns, so that a slow machine slows all of them. The interpreter may
be that of another environment, which needs NumPy and the library.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .peers import Step, prepare
from .protocol import Request, Timing


def measured(step: Step) -> Timing:
    """Run one step and return its measurements."""
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    cpu, wall = time.process_time(), time.perf_counter()
    loss = step()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Timing(wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults, loss)


def peak_memory() -> int:
    """Return the largest resident memory since `forget_peak`, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no line VmHWM")


def forget_peak() -> None:
    """Measure the peak of memory from now on: reading the file of weights is not part of training."""
    with contextlib.suppress(OSError):  # then the peak is that of the whole process
        Path("/proc/self/clear_refs").write_text("5")


def serve(connection: Connection, request: Request) -> None:
    """Answer "step" with a `Timing` and "memory" with bytes until the other end closes."""
    try:
        step = prepare(request)
        gc.collect()
        forget_peak()
        connection.send(("answer", os.getpid()))
        while True:
            command = connection.recv()
            connection.send(("answer", measured(step) if command == "step" else peak_memory()))
    except EOFError:
        pass  # the parent has finished
    except Exception as error:
        connection.send(("error", f"{type(error).__name__}: {error}"))


def main(arguments: list[str]) -> None:
    connection = Connection(int(arguments[0]))
    request: Any = connection.recv()
    serve(connection, request)


if __name__ == "__main__":
    main(sys.argv[1:])
