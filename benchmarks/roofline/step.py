"""A process that trains one model with rushlight and writes the operators of a step: MODEL START THREADS MODE STEPS OUT.

"step" is printed before each timed step, to separate the lines that oneDNN prints.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path

from ..table1.peers import prepare
from ..table1.protocol import Request
from .counts import operators

WARM_UP = 3


def main(model: str, start: str, threads: int, mode: str, steps: int, out: Path) -> None:
    step = prepare(Request("rushlight", model, start, mode, threads))
    for _ in range(WARM_UP):
        step()
    times = []
    for _ in range(steps):
        print("step", flush=True)
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    from rushlight.profiler import profile

    with profile(with_flops=True) as recorded:
        step()
    found = [asdict(operator) for operator in operators(recorded.events())]
    out.write_text(json.dumps({"seconds": statistics.median(times), "times": times, "operators": found}))


if __name__ == "__main__":
    name, start, threads, mode, steps, out = sys.argv[1:]
    main(name, start, int(threads), mode, int(steps), Path(out))
