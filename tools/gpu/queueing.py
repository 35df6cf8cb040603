"""Measure the host's time to queue an operator on the GPU, and the GPU's time for a large operator, also in PyTorch.

    PYTHONPATH=tools python -m gpu.queueing [--json FILE]

Calls on one element are queued 200 at a time; the time until all are queued is measured. Large calls are timed by
events around 20 of them. The libraries take turns; figures are medians of all rounds, in microseconds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu import plugin

TARGET = 0.5
ROUNDS, CALLS, LARGE_CALLS = 25, 200, 20


def small(torch: Any) -> dict[str, Callable[[], Any]]:
    x, y = torch.ones(1, device="cuda"), torch.ones(1, device="cuda")
    a, b = torch.ones(8, 8, device="cuda"), torch.ones(8, 8, device="cuda")
    return {
        "add": lambda: x + y,
        "add number": lambda: x + 1,
        "mul_": lambda: x.mul_(1.0),
        "relu": lambda: torch.relu(x),
        "sum": lambda: a.sum(),
        "matmul": lambda: a @ b,
        "softmax": lambda: torch.softmax(a, 1),
        "linear": lambda: torch.nn.functional.linear(a, b),
        "empty": lambda: torch.empty(1, device="cuda"),
    }


def large(torch: Any) -> dict[str, Callable[[], Any]]:
    n = 1 << 26
    x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    h = x[: 1 << 25].to(torch.bfloat16)
    a, b = torch.rand(4096, 4096, device="cuda"), torch.rand(4096, 4096, device="cuda")
    half_a, half_b = a.to(torch.bfloat16), b.to(torch.bfloat16)
    rows = x.reshape(-1, 1024)
    return {
        "add, 64 Mi float32": lambda: x + y,
        "mul, 32 Mi bfloat16": lambda: h * h,
        "exp, 64 Mi float32": lambda: torch.exp(x),
        "sum, 64 Mi float32": lambda: x.sum(),
        "sum of rows of 1024": lambda: rows.sum(1),
        "sum of columns": lambda: rows.sum(0),
        "softmax of rows of 1024": lambda: torch.softmax(rows, 1),
        "transposed copy": lambda: a.t().contiguous(),
        "matmul 4096 float32": lambda: a @ b,
        "matmul 4096 bfloat16": lambda: half_a @ half_b,
        "rand, 64 Mi": lambda: torch.rand(n, device="cuda"),
    }


def queued(torch: Any, call: Callable[[], Any]) -> float:
    """Return microseconds of the host for one call."""
    torch.cuda.synchronize()
    started = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    passed = time.perf_counter_ns() - started
    torch.cuda.synchronize()
    return passed / CALLS / 1e3


def computed(torch: Any, call: Callable[[], Any]) -> float:
    """Return microseconds of the GPU for one call."""
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    first.record()
    for _ in range(LARGE_CALLS):
        call()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / LARGE_CALLS * 1e3


def measure(
    libraries: dict[str, Any],
    calls: Callable[[Any], dict[str, Callable[[], Any]]],
    time_one: Callable[[Any, Callable[[], Any]], float],
) -> dict[str, dict[str, float]]:
    """Return the medians of every library for each call, or the error message of a library that refuses the call."""
    made = {name: calls(library) for name, library in libraries.items()}
    figures: dict[str, dict[str, float]] = {}
    for call in next(iter(made.values())):
        times: dict[str, list[float]] = {name: [] for name in libraries}
        try:
            for done in range(ROUNDS + 2):
                for name, library in libraries.items():
                    taken = time_one(library, made[name][call])
                    if done >= 2:  # the first two calls create buffers and plans
                        times[name].append(taken)
        except (NotImplementedError, RuntimeError) as error:
            print(f"{call:28} {type(error).__name__}: {' '.join(str(error).split())[:100]}", flush=True)
            continue
        figures[call] = {name: statistics.median(seen) for name, seen in times.items()}
        row = "  ".join(f"{name} {value:10.2f}" for name, value in figures[call].items())
        ratio = figures[call]["rushlight"] / figures[call]["torch"] if "torch" in libraries else float("nan")
        print(f"{call:28} {row}  ratio {ratio:.3f}", flush=True)
    return figures


def verdict(figures: dict[str, dict[str, float]]) -> str:
    """Return how many operators are queued in at most TARGET of PyTorch's time."""
    compared = [times for times in figures.values() if "torch" in times]
    within = sum(times["rushlight"] <= TARGET * times["torch"] for times in compared)
    return f"{within} of {len(compared)} operators are queued in at most {TARGET} of PyTorch's time"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    plugin.add_option(parser)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--small-only", action="store_true", help="leave the large calls out")
    given = parser.parse_args()
    libraries = {"rushlight": importlib.import_module("rushlight")}
    plugin.attach(given.plugin)
    try:
        peer = importlib.import_module("torch")
        if peer.cuda.is_available():
            libraries["torch"] = peer
            print(f"PyTorch {peer.__version__}")
    except ImportError:
        print("PyTorch is not there")
    figures = {"queueing, us": measure(libraries, small, queued)}
    print(verdict(figures["queueing, us"]))
    if not given.small_only and not given.plugin:
        figures["computing, us"] = measure(libraries, large, computed)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
