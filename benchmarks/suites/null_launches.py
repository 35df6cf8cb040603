"""null-launches: the host's time to queue one `add` on a CUDA device, and to find out that there is no device.

The plug-in of `packages/cuda` is compiled by g++ over its tests' driver in host memory, whose launches return at once. So
the time is that of core and of the plug-in, without CUDA's own. It is compared with one `add` of the peer on its meta
device, in the same process. `cuda.is_available()` is timed in fresh processes, with and without an installed plug-in.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .. import process, stats
from ..environment import confined
from ..library import Library
from ..options import Options
from ..report import number, table

TARGET = 0.5  # times the peer's add on the meta device
AVAILABLE_MS = 10.0
_ROOT = Path(__file__).resolve().parents[2]
_CALLS = 200  # between two synchronisations
_ROUNDS, _QUICK_ROUNDS = 1500, 100
_TIMED = """
import time
import {module}
before, cpu = time.perf_counter(), time.process_time()
found = {module}.cuda.is_available()
print(found, time.perf_counter() - before, time.process_time() - cpu)
"""


def run(options: Options) -> dict[str, Any]:
    """Return the nanoseconds of one call, medians over alternating rounds, their ratio, and the times of `is_available`."""
    with tempfile.TemporaryDirectory() as folder, confined(1, options.cpu_list()):
        plugin = build(Path(folder))
        rounds = _QUICK_ROUNDS if options.quick else _ROUNDS
        repeats = [
            process.fresh(measure, options.module, options.peer, str(plugin), rounds)
            for _ in range(1 if options.quick else 5)
        ]
        installed = Path(folder) / "installed"
        install(installed)
        available = {
            name: [ask(options, path) for _ in range(5 if options.quick else 25)]
            for name, path in (("without the package", None), ("with the package", installed))
        }
    ratio = stats.summarize([one["cuda"] / one["peer"] for one in repeats]).as_dict()
    return {
        "suite": "null-launches",
        "module": options.module,
        "peer": options.peer,
        "target": TARGET,
        "repeats": repeats,
        "ratio": ratio,
        "available_ms": {
            name: {key: sorted(one[key] for one in taken)[len(taken) // 2] for key in ("wall", "cpu")}
            for name, taken in available.items()
        },
    }


def build(folder: Path) -> Path:
    """Compile the plug-in over the driver in host memory, with the loop of `add` only."""
    command = [sys.executable, str(_ROOT / "packages" / "cuda" / "tests" / "host_plugin.py"), str(folder)]
    done = subprocess.run(
        [*command, "--operators", "add", "--optimised"], check=True, capture_output=True, text=True
    )
    return Path(done.stdout.splitlines()[-1])


def install(folder: Path) -> None:
    """Make the Python part of the plug-in's package importable from a folder. Without a driver, no other part is loaded."""
    info = folder / "rushlight_cuda-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rushlight-cuda\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[rushlight.backends]\ncuda = rushlight_cuda:library\n")
    (folder / "rushlight_cuda").symlink_to(_ROOT / "packages" / "cuda" / "python" / "rushlight_cuda")


def ask(options: Options, installed: Path | None) -> dict[str, float]:
    """Return the milliseconds of the first `cuda.is_available()` of a fresh process, which must find no device."""
    # Modules are compiled once, as on a user's machine.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if installed is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(installed), environment.get("PYTHONPATH", "")])
    command = [options.python, "-c", _TIMED.format(module=options.module)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    found, wall, cpu = output.split()
    if found != "False":
        raise RuntimeError(
            "null-launches: this machine has a CUDA device; the suite needs a machine without one"
        )
    return {"wall": 1e3 * float(wall), "cpu": 1e3 * float(cpu)}


def measure(send: process.Send, module: str, peer: str, plugin: str, rounds: int) -> None:
    """Run in the fresh process."""
    own, other = Library(module, 1).module, Library(peer, 1).module
    own.devices.load_backend(plugin)
    ctypes.CDLL(plugin).fake_cuda_null_launches(1)
    calls = {"cuda": (own, own.ones(1, device="cuda")), "peer": (other, other.ones(1, device="meta"))}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, (library, x) in calls.items():
            add, repeats = library.add, range(_CALLS)
            before = time.perf_counter()
            for _ in repeats:
                add(x, x)
            times[name].append((time.perf_counter() - before) / _CALLS * 1e9)
        own.devices.synchronize("cuda")
    send({name: sorted(taken)[len(taken) // 2] for name, taken in times.items()})


def render(result: dict[str, Any]) -> str:
    """Return tables with the times of both libraries and their ratio, and of the question for a device."""
    ratio = result["ratio"]
    middle = {
        name: sorted(one[name] for one in result["repeats"])[len(result["repeats"]) // 2]
        for name in ("cuda", "peer")
    }
    header = ["one add", "null launch", f"{result['peer']}, meta", "ratio", "spread", "target", "verdict"]
    row = ["of one element", *(f"{middle[name]:.0f} ns" for name in middle), number(ratio["median"])]
    row += [f"{100 * ratio['spread']:.0f} %", f"{result['target']}"]
    row += ["met" if ratio["median"] <= result["target"] else "not met"]
    asked = [
        [name, f"{taken['wall']:.1f} ms", f"{taken['cpu']:.1f} ms", f"{AVAILABLE_MS:.0f} ms",
         "met" if taken["wall"] < AVAILABLE_MS else "not met"]
        for name, taken in result["available_ms"].items()
    ]  # fmt: skip
    asked_header = ["cuda.is_available() without a driver", "wall", "CPU", "target", "verdict"]
    return f"null-launches: {result['module']}\n\n{table(header, [row])}\n\n{table(asked_header, asked)}"
