"""import: the time of ``import rushlight`` in fresh interpreters, against its peer."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections import defaultdict
from typing import Any

from .. import stats
from ..environment import confined
from ..options import Options
from ..report import bound, number, table

TARGET = 0.2

# The measured quantities, and the headings of their columns.
QUANTITIES = {"cpu": "CPU, spread", "wall": "wall, spread", "process": "whole process, CPU, spread"}

# Compiled files of the first runs and the page cache are warm afterwards: what is measured is the everyday
# start.
_WARM_UPS = 2


# The import alone is timed inside the child; the parent sees the whole process, its exit included.
_TIMED = """
import time
cpu, wall = time.process_time(), time.perf_counter()
import {module}
print(time.process_time() - cpu, time.perf_counter() - wall)
"""


def run(options: Options) -> dict[str, Any]:
    """Return CPU and wall seconds of the import, CPU seconds of the whole process, and the split by package."""
    rounds = 5 if options.quick else 25
    subjects = {
        "subject": (options.python, options.module),
        "peer": (options.peer_python, options.peer),
        "numpy": (options.peer_python, "numpy"),
    }
    seconds: dict[str, dict[str, list[float]]] = {key: {name: [] for name in subjects} for key in QUANTITIES}
    with confined(1, options.cpu_list()):
        for round_ in range(-_WARM_UPS, rounds):
            for name, (python, module) in subjects.items():
                found = start(python, module)
                if round_ >= 0:
                    for key, value in zip(QUANTITIES, found, strict=True):
                        seconds[key][name].append(value)
        split = {
            name: split_by_package(*subjects[name], 3 if options.quick else 7) for name in ("subject", "peer")
        }
    ratios = {
        key: stats.median_ratio(stats.ratios(values["subject"], values["peer"]))
        for key, values in seconds.items()
    }
    return {
        "suite": "import",
        "module": options.module,
        "peer": options.peer,
        "seconds": {
            key: {name: stats.summarize(samples).as_dict() for name, samples in values.items()}
            for key, values in seconds.items()
        },
        "ratios": {key: ratio.as_dict() for key, ratio in ratios.items()},
        "target": TARGET,
        "verdict": stats.verdict(ratios["cpu"], TARGET),
        "split_ms": split,
    }


def start(python: str, module: str) -> tuple[float, float, float]:
    """Return the seconds of one import in a fresh interpreter, in the order of `QUANTITIES`.

    Raises RuntimeError with the last line of its error when the import fails.
    """
    command = [python, "-P", "-c", _TIMED.format(module=module)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        assert child.stdout is not None
        output = (
            child.stdout.read().decode(errors="replace").strip()
        )  # read to the end, because a full pipe would block the process
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    last = output.splitlines()[-1] if output else "no message"
    if child.returncode != 0:
        raise RuntimeError(f"import {module} ended with exit code {child.returncode}: {last}")
    cpu, wall = last.split()
    return float(cpu), float(wall), usage.ru_utime + usage.ru_stime


def split_by_package(python: str, module: str, repeats: int) -> dict[str, float]:
    """Return the milliseconds spent in each package's own modules: medians over fresh interpreters, largest first."""
    collected: dict[str, list[float]] = defaultdict(list)
    for _ in range(repeats):
        output = subprocess.run(
            [python, "-P", "-X", "importtime", "-c", f"import {module}"],
            check=True,
            capture_output=True,
            text=True,
        ).stderr
        for package, milliseconds in parse_importtime(output).items():
            collected[package].append(milliseconds)
    medians = {package: statistics.median(values) for package, values in collected.items()}
    return {package: round(value, 3) for package, value in sorted(medians.items(), key=lambda item: -item[1])}


def parse_importtime(text: str) -> dict[str, float]:
    """Sum the self times of ``-X importtime`` by top-level package, in milliseconds.

    Modules of the standard library are one entry. Everything before ``site`` has finished belongs to the
    interpreter's start and is left out.
    """
    lines = [
        line.removeprefix("import time:").split("|")
        for line in text.splitlines()
        if line.startswith("import time:")
    ]
    modules = [(cells[2].strip(), cells[0].strip()) for cells in lines if len(cells) == 3]
    timed = [(name, int(own)) for name, own in modules if own.isdigit()]
    names = [name for name, _ in timed]
    begin = names.index("site") + 1 if "site" in names else 0
    totals: dict[str, float] = defaultdict(float)
    for name, own in timed[begin:]:
        package = name.split(".")[0]
        totals["(standard library)" if package in sys.stdlib_module_names else package] += own / 1e3
    return dict(totals)


def render(result: dict[str, Any]) -> str:
    """Return two tables: the times, and the split by package."""
    names = {"subject": result["module"], "peer": result["peer"], "numpy": "numpy"}
    body = [
        [f"import {label}", *(_cell(result["seconds"][key][name]) for key in QUANTITIES)]
        for name, label in names.items()
    ]
    body.append(["ratio", *(_ratio(result["ratios"][key]) for key in QUANTITIES)])
    splits = [_split(names[name], result["split_ms"][name]) for name in ("subject", "peer")]
    return "\n\n".join(
        [
            "import",
            table(["", *QUANTITIES.values()], body),
            f"target {number(result['target'])} of the import's CPU time: {result['verdict']}",
            *splits,
        ]
    )


def _cell(summary: dict[str, float]) -> str:
    return f"{summary['median'] * 1e3:.1f} ms, {summary['spread']:.0%}"


def _ratio(estimate: dict[str, float]) -> str:
    return f"{number(estimate['value'])} ({bound(estimate['low'], estimate['high'])})"


def _split(name: str, milliseconds: dict[str, float]) -> str:
    rows = [[package, f"{value:.2f}"] for package, value in milliseconds.items() if value >= 0.05]
    return f"own time by package, {name}\n\n" + table(["package", "ms"], rows)
