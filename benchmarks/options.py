"""The options of a run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from .harness import Plan


@dataclass(frozen=True)
class Options:
    """The parsed command line.

    module, peer: import names of the libraries. python, peer_python: the interpreters for `import` and `size`, so that each
    library can have its own environment. other_python, rows: the interpreter with the other build for `against`, and the
    suite whose rows are compared.
    """

    module: str = "rushlight"
    peer: str = "torch"
    threads: tuple[int, ...] = (1,)
    quick: bool = False
    clock: str | None = None
    match: str = ""
    cpus: tuple[int, ...] | None = None
    python: str = sys.executable
    peer_python: str = sys.executable
    other_python: str | None = None
    rows: str = "overhead"
    profiler: str = "rushlight_profiler"
    build_times: Path = Path("dist/build-times.json")

    def clock_for(self, threads: int) -> str:
        """Return the clock: CPU time on one thread, which excludes the time of other programs; wall time if threads wait."""
        return self.clock or ("cpu" if threads == 1 else "wall")

    def cpu_list(self) -> list[int] | None:
        return None if self.cpus is None else list(self.cpus)

    def plan(self, threads: int, *, large: bool = False) -> Plan:
        """Return the plan of how long a row is measured. large: whether a single call may fill a block."""
        settle = 0.0 if threads == 1 else 5e-3
        if self.quick:
            return Plan(rounds=15, block_s=1e-3, seconds=1.0, settle_s=settle)
        if large:
            return Plan(rounds=40, block_s=4e-3, seconds=4.0, settle_s=settle)
        return Plan(rounds=200, block_s=2e-3, seconds=6.0, settle_s=settle)
