"""What a run was asked for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from .harness import Plan


@dataclass(frozen=True)
class Options:
    """The command line, parsed.

    module, peer: import names of the libraries. python, peer_python: the interpreters that `import` and
    `size` look at, so that each library can live in an environment of its own. other_python: the interpreter
    with the build that `against` compares with.
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
    profiler: str = "rushlight_profiler"
    build_times: Path = Path("dist/build-times.json")

    def clock_for(self, threads: int) -> str:
        """CPU time on one thread, where other programs' turns do not count; wall time where threads wait."""
        return self.clock or ("cpu" if threads == 1 else "wall")

    def cpu_list(self) -> list[int] | None:
        return None if self.cpus is None else list(self.cpus)

    def plan(self, threads: int, *, large: bool = False) -> Plan:
        """How long a row is measured. large: rows whose single call may fill a block."""
        settle = 0.0 if threads == 1 else 5e-3
        if self.quick:
            return Plan(rounds=15, block_s=1e-3, seconds=1.0, settle_s=settle)
        if large:
            return Plan(rounds=40, block_s=4e-3, seconds=4.0, settle_s=settle)
        return Plan(rounds=200, block_s=2e-3, seconds=6.0, settle_s=settle)
