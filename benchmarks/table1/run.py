"""Measure one model: every mode in a separate process, step by step in turn. See Note [Fair comparison] in harness.py."""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import stats
from ..environment import confined
from .agreement import STEPS, compare
from .catalogue import ENTRIES
from .modes import Group, Mode
from .protocol import Request, Timing
from .training import FailedError, Training

Progress = Callable[[str], None]

_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Plan:
    """How long to measure.

    warm_up: number of untimed steps, in which libraries plan and compile. seconds: the time limit of all modes together
    after the warm-up, which applies once `minimum` rounds are done. check: whether the peers' losses are compared with ours
    first. patience: see `Training`.
    """

    warm_up: int = 3
    minimum: int = 5
    rounds: int = 60
    seconds: float = 60.0
    check: bool = True
    patience: float = 600.0


def write_start(python: str, workload: str, size: int, path: Path) -> None:
    """Write the file from which all libraries start, with rushlight's interpreter; see `weights.py`."""
    command = [python, "-m", "benchmarks.table1.weights", workload, str(size), str(path)]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        raise FailedError(f"{python} cannot be started: {error.strerror}") from error
    if done.returncode:
        raise FailedError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])


def measure(
    workload: str,
    group: Group,
    threads: int,
    plan: Plan,
    *,
    pythons: Mapping[str, str],
    progress: Progress,
    size: int | None = None,
    missing: Mapping[str, str] | None = None,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Return a row of the report: times, page faults, memory and the ratio to ours per mode, or why there are none.

    pythons: the interpreter of each library. missing: the reason why a library has none.
    """
    results: dict[str, dict[str, Any]] = {}
    clock = "cpu" if threads == 1 else "wall"
    row = {
        "workload": workload,
        "group": group.name,
        "threads": threads,
        "size": size,
        "clock": clock,
        "seconds": plan.seconds,
        "check": plan.check,
        "modes": results,
    }
    modes = []
    for mode in group.modes:
        if reason := (missing or {}).get(mode.library):
            results[str(mode)] = {"problem": reason}
        else:
            modes.append(mode)
    if {mode.library for mode in modes} != {mode.library for mode in group.modes}:
        return row
    with ExitStack() as stack:
        stack.enter_context(confined(threads))
        start = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "start.npz"
        progress("weights")
        try:
            samples = ENTRIES[workload].size if size is None else size
            write_start(pythons["rushlight"], workload, samples, start)
        except FailedError as error:
            results |= {str(mode): {"problem": f"no weights to start from: {error}"} for mode in modes}
            return row

        def train(mode: Mode, **more: Any) -> Training:
            request = Request(mode.library, workload, str(start), mode.switches, threads, **more)
            return Training(request, pythons[mode.library], plan.patience)

        if plan.check:
            row["agreement"] = _check(train, workload, modes, results, progress)
            modes = [mode for mode in modes if str(mode) not in results]
        _take_turns(stack, train, modes, str(group.modes[0]), plan, results, clock, progress, now)
    return row


def _check(
    train: Callable[..., Training],
    workload: str,
    modes: Sequence[Mode],
    results: dict[str, dict[str, Any]],
    progress: Progress,
) -> dict[str, Any]:
    """Compare the losses of every mode's first steps with ours. Modes that differ get a problem in `results`."""
    ours: list[float] | None = None
    found = {}
    for mode in modes:
        progress(f"checking {mode}")
        try:
            with train(mode, samples=ENTRIES[workload].checked, dropout=False) as training:
                losses = [training.step().loss for _ in range(STEPS)]
        except FailedError as error:
            results[str(mode)] = {"problem": str(error)}
            continue
        if mode == modes[0]:
            ours = losses
        elif ours is not None:
            found[str(mode)] = compare(ours, losses)
            if "problem" in found[str(mode)]:
                results[str(mode)] = {"problem": found[str(mode)]["problem"]}
    return found


def _take_turns(
    stack: ExitStack,
    train: Callable[[Mode], Training],
    modes: Sequence[Mode],
    ours: str,
    plan: Plan,
    results: dict[str, dict[str, Any]],
    clock: str,
    progress: Progress,
    now: Callable[[], float],
) -> None:
    """Fill `results` with the measurements of every mode, or with its problem.

    ours: the mode with which the others are compared. If it fails, there are no ratios.
    """
    running: dict[str, Training] = {}
    series: dict[str, list[Timing]] = {}
    first: dict[str, Timing] = {}
    for mode in modes:
        name = str(mode)
        progress(f"warming up {name}")
        try:
            training = train(mode)
            stack.callback(training.close)
            first[name] = training.step()
            for _ in range(plan.warm_up - 1):
                training.step()
            running[name] = training
            series[name] = []
        except FailedError as error:
            results[name] = {"problem": str(error)}
    order = list(running)
    rng = random.Random(0)
    start = now()
    for round_ in range(plan.rounds):
        if round_ >= plan.minimum and now() - start > plan.seconds:
            break
        progress(f"round {round_ + 1}, {now() - start:.0f} s")
        rng.shuffle(order)
        for name in list(order):
            try:
                series[name].append(running[name].step())
            except FailedError as error:
                results[name] = {"problem": str(error)}
                order.remove(name)
    for name in (str(mode) for mode in modes):
        if name not in order:
            continue
        results[name] = _summary(first[name], series[name], running[name].peak_memory())
        if name != ours and ours in order:
            paired = stats.ratios(*([getattr(t, clock) for t in series[one]] for one in (name, ours)))
            results[name]["speed"] = stats.median_ratio(paired).as_dict()


def _summary(first: Timing, series: Sequence[Timing], memory: int) -> dict[str, Any]:
    return {
        "cpu": stats.summarize([t.cpu for t in series]).as_dict(),
        "wall": stats.summarize([t.wall for t in series]).as_dict(),
        "first step": first.wall,
        "faults": float(np.median([t.faults for t in series])),
        "memory": memory,
        "loss": series[-1].loss,
    }
