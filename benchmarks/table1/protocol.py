"""What is asked of a training process, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """What a process trains. library: "rushlight" or "torch". size: samples in a batch, by default the workload's own."""

    library: str
    workload: str
    mode: str = "default"
    threads: int = 1
    size: int | None = None


@dataclass(frozen=True)
class Timing:
    """One step: seconds on the clock, seconds of CPU of all threads, page faults, and the loss."""

    wall: float
    cpu: float
    faults: int
    loss: float
