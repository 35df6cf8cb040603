"""queueing: the time to queue one `add` on the toy device, compared with one `add` of one element on the CPU.

The toy device runs queued work only when a caller waits for it, so the time is that of core's dispatch and of the device's
queue. Its memory comes from core's caching allocator. The plug-in is compiled from the sources of `rushlight_testing`.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from .. import process, stats
from ..environment import confined
from ..library import Library
from ..options import Options
from ..report import number, table

TARGET = 1.5  # times the CPU's add
_DEVICES = {"cpu": "cpu", "toy": "toy:1"}  # the memory of the last toy device is managed by core's allocator
_CALLS = 200  # between two synchronisations
_ROUNDS, _QUICK_ROUNDS = 1500, 100


def run(options: Options) -> dict[str, Any]:
    """Return the nanoseconds of one call, medians over rounds that alternate between the devices, and their ratio."""
    with tempfile.TemporaryDirectory() as folder, confined(1, options.cpu_list()):
        repeats = [
            process.fresh(measure, options.module, folder, _QUICK_ROUNDS if options.quick else _ROUNDS)
            for _ in range(1 if options.quick else 5)
        ]
    ratio = stats.summarize([one["toy"] / one["cpu"] for one in repeats]).as_dict()
    return {
        "suite": "queueing",
        "module": options.module,
        "target": TARGET,
        "repeats": repeats,
        "ratio": ratio,
    }


def measure(send: process.Send, module: str, folder: str, rounds: int) -> None:
    """Run in the fresh process."""
    from rushlight_testing.native import compile_plugin

    torch = Library(module, 1).module
    plugin = Path(folder) / "toy_device.so"
    if not plugin.exists():
        compile_plugin("toy_device", Path(folder), ["-O2"])
    torch.devices.load_backend(plugin)
    operands = {name: torch.ones(1, device=device) for name, device in _DEVICES.items()}
    times: dict[str, list[float]] = {name: [] for name in _DEVICES}
    for _ in range(rounds):
        for name, x in operands.items():
            add, calls = torch.add, range(_CALLS)
            before = time.perf_counter()
            for _ in calls:
                add(x, x)
            times[name].append((time.perf_counter() - before) / _CALLS * 1e9)
            torch.devices.synchronize("toy:1")
    send({name: sorted(taken)[len(taken) // 2] for name, taken in times.items()})


def render(result: dict[str, Any]) -> str:
    """Return a table with the times of both devices and their ratio."""
    ratio = result["ratio"]
    verdict = "met" if ratio["median"] <= result["target"] else "not met"
    middle = {
        name: sorted(one[name] for one in result["repeats"])[len(result["repeats"]) // 2] for name in _DEVICES
    }
    header = ["one add", "CPU", "queued on the toy device", "ratio", "spread", "target", "verdict"]
    row = ["of one element", *(f"{middle[name]:.0f} ns" for name in _DEVICES), number(ratio["median"])]
    row += [f"{100 * ratio['spread']:.0f} %", f"{result['target']}", verdict]
    return f"queueing: {result['module']}\n\n{table(header, [row])}"
