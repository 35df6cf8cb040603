"""Call operators with invalid arguments in separate processes, and record the calls in which a process crashes or hangs."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STATE = 4096
DEATHS = 20  # crashes of one operator after which its remaining cases are skipped


@dataclass
class Report:
    """The results of the cases of one operator.

    Attributes:
        tried: the number of cases that ran.
        faults: a description of each case with a wrong outcome.
        slow: a description of each case that took longer than the argument `slow` of :func:`hunt`.

    Example::

        report = hunt([op])["add"]
        print(report.tried, report.faults)
    """

    tried: int = 0
    faults: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)


def hunt(ops: Sequence[Any], *, every: int = 1, memory: int = 0, patience: float = 60, slow: float = 0,
         processes: int = 1, provider: str = "",
         environment: dict[str, str] | None = None) -> dict[str, Report]:  # fmt: skip
    """Run the cases of operators in separate processes, which may crash.

    Args:
        ops: entries, `rushlight_core.codegen.model.Op`.
        every: run one in `every` cases.
        memory: bytes that a process may allocate after it has started; 0 for no limit.
        patience: the time limit in seconds for the cases of one operator.
        slow: the time in seconds after which a case is listed as slow; 0 to list none.
        processes: the number of processes that run at once.
        provider: the package that computes gradients, such as "rushlight_autograd". If a package is given,
            arguments require grad, and results are differentiated. By default, gradients are not tested.
        environment: environment variables of these processes, in addition to the variables of this process.

    Returns:
        A dict that maps the names of the operators to their reports.

    Raises:
        RuntimeError: a process does not start.

    Example::

        from rushlight_testing.operators import operators

        ops = [op for op in operators() if op.family == "scan"]
        for name, report in hunt(ops, memory=512 << 20).items():
            print(name, report.tried, report.faults)
    """
    reports = {op.name: Report() for op in ops}
    options = [f"--every={every}", f"--memory={memory}", f"--patience={patience}", f"--slow={slow}"]
    options += [f"--provider={provider}"] if provider else []
    shares = [list(ops[i::processes]) for i in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        for done in [
            pool.submit(_share, share, options, reports, environment or {}) for share in shares if share
        ]:
            done.result()
    return reports


def _share(
    ops: list[Any], options: list[str], reports: dict[str, Report], environment: dict[str, str]
) -> None:
    """Run the cases in a process. After a crash, start another process, which continues after the case that crashed."""
    begin, deaths = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        state, errors, entries = (Path(folder) / name for name in ("state", "errors", "entries"))
        entries.write_bytes(pickle.dumps(ops))
        skip = 0
        while skip < len(ops):
            state.write_bytes(b"\0" * STATE)
            command = [sys.executable, "-P", "-m", "rushlight_testing.bad_input", "--entries", str(entries)]
            command += ["--skip", str(skip), "--begin", str(begin), "--state", str(state), *options]
            finished = []
            with open(errors, "wb") as stderr:
                process = subprocess.Popen(
                    command,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    text=True,
                    env={**os.environ, **environment},
                )
                assert process.stdout is not None
                for line in process.stdout:
                    if _note(line, reports):
                        finished.append(line)
                status = process.wait()
            skip += len(finished)
            if status == 0 and skip == len(ops):
                return
            # Messages of a crashing process may be long. They begin with the error and end with the caller.
            lines = errors.read_text(errors="replace").splitlines()
            text = "\n".join(line for line in lines if "failed to allocate" not in line)
            if not state.read_bytes().strip(b"\0"):
                raise RuntimeError(f"the process that runs the cases did not start:\n{text[-4000:]}")
            name, count, case = json.loads(state.read_bytes().split(b"\0")[0])
            deaths = deaths + 1 if not finished else 1
            reports[name].faults.append(f"{case}: the process ended ({status})\n{text[:6000]}")
            begin = count
            if deaths >= DEATHS:
                skip, begin, deaths = skip + 1, 0, 0


def _note(line: str, reports: dict[str, Report]) -> bool:
    """Add a message from the process that runs cases. Return whether it is the operator's last message."""
    try:
        message = json.loads(line)
    except ValueError:  # output of a library
        return False
    report = reports[message["op"]]
    if "fault" in message:
        report.faults.append(f"{message['case']}: {message['fault']}")
    elif "slow" in message:
        report.slow.append(f"{message['slow']:.2f} s: {message['case']}")
    else:
        report.tried += message["tried"]
    return "tried" in message


def cores() -> int:
    return len(os.sched_getaffinity(0))
