"""The command line: ``python -m benchmarks.accuracy digits characters --seeds 3``.

For each seed, a fresh process of each library trains until the task's target is reached. rushlight draws PyTorch's random
numbers, so that both start from the same weights and see the same batches.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .. import environment, report

NAMES = ("digits", "characters")
LIBRARIES = ("rushlight", "torch")

_ROOT = Path(__file__).resolve().parents[2]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"default: all of {', '.join(NAMES)}")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=3, help="how many (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path("bench-out/accuracy.json"), help="the figures, as JSON"
    )
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.tasks if name not in NAMES]:
        parser.error(f"no such task: {', '.join(unknown)} (choose from {', '.join(NAMES)})")
    given.tasks = given.tasks or list(NAMES)
    return given


def train(library: str, task: str, seed: int, threads: int) -> dict[str, Any]:
    """Return the seconds and the figures of one training, or the reason why there are none."""
    command = [sys.executable, "-m", "benchmarks.accuracy.child", library, task, str(seed), str(threads)]
    settings = {**os.environ, "RUSHLIGHT_RANDOM": "torch"}
    done = subprocess.run(command, cwd=_ROOT, env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"problem": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(
    task: str, threads: int, seeds: int, train: Callable[[str, str, int, int], dict[str, Any]] = train
) -> dict[str, Any]:
    """Return the trainings of each library, which take turns for each seed, and the median ratio of their seconds."""
    runs: dict[str, list[dict[str, Any]]] = {library: [] for library in LIBRARIES}
    for seed in range(seeds):
        for library in LIBRARIES if seed % 2 == 0 else reversed(LIBRARIES):
            runs[library].append(train(library, task, seed, threads))
    row: dict[str, Any] = {"task": task, "threads": threads, "runs": runs}
    if all(run.get("reached") for library in LIBRARIES for run in runs[library]):
        paired = [b["seconds"] / a["seconds"] for a, b in zip(*runs.values(), strict=True)]
        row["speed"] = float(np.median(paired))
    return row


def render(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        cells = [row["task"], str(row["threads"])]
        for library in LIBRARIES:
            cells.append("; ".join(_cell(run) for run in row["runs"][library]))
        lines.append([*cells, f"{row['speed']:.2f}" if "speed" in row else ""])
    header = [
        "task",
        "threads",
        *(f"{library}: seconds, parts" for library in LIBRARIES),
        "torch / rushlight",
    ]
    return report.table(header, lines)


def _cell(run: dict[str, Any]) -> str:
    if "problem" in run:
        return run["problem"]
    text = f"{run['seconds']:.1f}, {len(run['figures'])}"
    return text if run["reached"] else f"{text}, only {run['figures'][-1]:.4g}"


def main(arguments: list[str]) -> int:
    given = parse(arguments)
    machine = environment.describe()
    rows = []
    with environment.confined(given.threads):
        for task in given.tasks:
            rows.append(measure(task, given.threads, given.seeds))
            print(render(rows[-1:]), flush=True)
            report.write(given.out, {"schema": 1, "machine": machine, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
