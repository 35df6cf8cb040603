"""Run calls with bad input, which may crash this process. `watch.py` starts the process and reads its output."""

from __future__ import annotations

import argparse
import faulthandler
import functools
import importlib
import json
import mmap
import pickle
import resource
import sys
import time
import warnings
import zlib
from pathlib import Path

from rushlight_testing.bad_input.cases import cases_of
from rushlight_testing.bad_input.gradients import judge_gradients
from rushlight_testing.bad_input.verdict import judge


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", default="rushlight_core")
    parser.add_argument("--entries", required=True, help="a file with the pickled operators")
    parser.add_argument("--skip", type=int, default=0, help="number of operators to skip")
    parser.add_argument("--every", type=int, default=1, help="run one case in N, selected by its text")
    parser.add_argument("--begin", type=int, default=0, help="number of cases of the first operator to skip")
    parser.add_argument(
        "--memory", type=int, default=0, help="bytes that may be allocated in addition; 0: no limit"
    )
    parser.add_argument(
        "--patience", type=float, default=60, help="time limit in seconds for the cases of one operator"
    )
    parser.add_argument(
        "--state", required=True, help="a file to which the name of the current case is written"
    )
    parser.add_argument(
        "--provider", default="", help="provider of gradients; results are then differentiated"
    )
    parser.add_argument(
        "--slow", type=float, default=0, help="print cases that take longer than this many seconds"
    )
    given = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    library = importlib.import_module(given.library)
    verdict = functools.partial(judge, library=library)
    if given.provider:
        gradient = importlib.import_module(given.provider).grad
        verdict = functools.partial(judge_gradients, library=library, gradient=gradient)
    entries = pickle.loads(Path(given.entries).read_bytes())
    library.ones(3) + 1  # load lazily loaded libraries before the limit is set
    library.ones(3, 3) @ library.ones(3, 3)
    library.linalg.inv(library.eye(3))
    if given.memory:
        _limit(given.memory)
    with open(given.state, "r+b") as file, mmap.mmap(file.fileno(), 0) as state:
        begin = given.begin
        for op in entries[given.skip :]:
            faulthandler.dump_traceback_later(given.patience, exit=True)
            count = tried = 0
            for case in cases_of(op, library):
                count += 1
                chosen = count == 1 or zlib.crc32(f"{op.name} {case.text}".encode()) % given.every == 0
                if not chosen or count <= begin:
                    continue
                text = json.dumps([op.name, count, case.text]).encode()[: len(state) - 1]
                state[: len(text) + 1] = text + b"\0"
                tried += 1
                started = time.perf_counter()
                fault = verdict(op, case=case)
                taken = time.perf_counter() - started
                if fault:
                    _tell({"op": op.name, "case": case.text, "fault": fault})
                if given.slow and taken > given.slow:
                    _tell({"op": op.name, "case": case.text, "slow": taken})
            begin = 0
            _tell({"op": op.name, "tried": tried})
        faulthandler.cancel_dump_traceback_later()


def _limit(nbytes: int) -> None:
    """Limit the memory of this process to `nbytes` more than it uses now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + nbytes,) * 2)


def _tell(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
