"""The requests to a training process, and its answers."""

from __future__ import annotations

from dataclasses import dataclass

# Environment variables of switches that must be set when a process starts. "malloc" reduces page faults without
# changing the program: glibc keeps freed memory, and uses huge pages.
VARIABLES = {
    "malloc": {
        "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=17179869184:"
        "glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1"
    },
    "uncached": {"RUSHLIGHT_CPU_ALLOCATOR": "malloc"},
    "tape": {"RUSHLIGHT_AUTOGRAD": "tape"},
}


@dataclass(frozen=True)
class Request:
    """The training that a process runs.

    library: "rushlight" or a peer of `modes.PEERS`. mode: the enabled switches, joined by "+". start: the file of
    `weights.py` with the initial weights and the batch. samples: the number of the batch's samples that are used, by default
    all. dropout: whether dropout is applied; without it the losses of all libraries are equal.
    """

    library: str
    workload: str
    start: str
    mode: str = "default"
    threads: int = 1
    samples: int | None = None
    dropout: bool = True

    def switches(self) -> frozenset[str]:
        return frozenset() if self.mode == "default" else frozenset(self.mode.split("+"))


@dataclass(frozen=True)
class Timing:
    """One step: wall-clock seconds, CPU seconds of all threads, page faults, and the loss."""

    wall: float
    cpu: float
    faults: int
    loss: float
