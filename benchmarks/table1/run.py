"""Measures one model: every mode in a process of its own, step by step in turn. See Note [Fair comparison] in harness.py."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import stats
from ..environment import confined
from .modes import Mode
from .protocol import Request, Timing
from .training import FailedError, Training

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How long to measure. warm_up: steps that are not timed, in which plans are made. seconds: budget of all modes together
    after that, kept once `minimum` rounds are done.
    """

    warm_up: int = 3
    minimum: int = 5
    rounds: int = 60
    seconds: float = 120.0


def measure(
    workload: str,
    modes: Sequence[Mode],
    threads: int,
    plan: Plan,
    *,
    pythons: dict[str, str],
    progress: Progress,
    size: int | None = None,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """A row of the table: per mode times, page faults and memory, or the reason why there are none.

    pythons: the interpreter of each library. The first mode is the one that the others are compared with.
    """
    results: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        stack.enter_context(confined(threads))
        running: dict[str, Training] = {}
        series: dict[str, list[Timing]] = {}
        for mode in modes:
            name = str(mode)
            progress(f"{workload}, {threads} threads: warming up {name}")
            request = Request(mode.library, workload, mode.switches, threads, size)
            try:
                training = Training(request, pythons[mode.library])
                stack.callback(training.close)
                for _ in range(plan.warm_up):
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
            progress(f"{workload}, {threads} threads: round {round_ + 1}, {now() - start:.0f} s")
            rng.shuffle(order)
            for name in list(order):
                try:
                    series[name].append(running[name].step())
                except FailedError as error:
                    results[name] = {"problem": str(error)}
                    order.remove(name)
        for name in order:
            results[name] = _summary(series[name], running[name].peak_memory())
    clock = "cpu" if threads == 1 else "wall"
    best = _fastest(results, str(modes[0]), clock)
    row: dict[str, Any] = {"workload": workload, "threads": threads, "clock": clock, "modes": results}
    if best is not None:
        paired = stats.ratios(
            [getattr(t, clock) for t in series[best]], [getattr(t, clock) for t in series[str(modes[0])]]
        )
        row["best peer"] = best
        row["speed"] = stats.median_ratio(paired).as_dict()
    return row


def _summary(series: Sequence[Timing], memory: int) -> dict[str, Any]:
    return {
        "cpu": stats.summarize([t.cpu for t in series]).as_dict(),
        "wall": stats.summarize([t.wall for t in series]).as_dict(),
        "faults": float(np.median([t.faults for t in series])),
        "memory": memory,
        "loss": series[-1].loss,
    }


def _fastest(results: dict[str, dict[str, Any]], ours: str, clock: str) -> str | None:
    """The fastest of the other libraries' modes; None where there is none or ours failed."""
    library = ours.split()[0]
    others = {
        name: result[clock]["median"]
        for name, result in results.items()
        if "problem" not in result and name.split()[0] != library
    }
    if not others or "problem" in results[ours]:
        return None
    return min(others, key=others.__getitem__)
