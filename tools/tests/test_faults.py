"""The table of faults, and what is said about an outcome. The faults themselves are injected by `nox -s faults`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

from faults.__main__ import Outcome, _cell, counts, session_members, table
from faults.registry import load


def test_there_are_ninety_faults() -> None:
    faults = load()
    assert len(faults) >= 90
    for fault in faults.values():
        re.compile(fault.names)


def test_what_is_held() -> None:
    assert Outcome("error", 0.1, [], "").held
    assert Outcome("went on", 0.1, [], "").held
    for what in ("vague error", "wrong results", "hangs", "crashes", "does not end"):
        assert not Outcome(what, 0.1, [], "").held
    assert not Outcome("error", 0.1, ["1 processes"], "").held


def test_cells_and_counts() -> None:
    fault = next(iter(load().values()))
    outcomes = {
        "rushlight": Outcome("error", 0.004, [], ""),
        "torch": Outcome("hangs", None, ["2 processes"], ""),
    }
    assert _cell(outcomes["rushlight"]) == "error, 4 ms"
    assert _cell(outcomes["torch"]) == "**hangs, leaves 2 processes**"
    rows = [(fault, outcomes)]
    assert counts(rows) == "rushlight held 1 of 1, torch held 0 of 1"
    assert table(rows).splitlines()[0] == "| fault | rushlight | PyTorch |"


def test_processes_of_a_session() -> None:
    program = "import subprocess, sys, time; subprocess.Popen(['sleep', '60']); print(1, flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert len(session_members(child.pid)) == 2
    finally:
        for pid in session_members(child.pid):
            os.kill(pid, 9)
        child.communicate()
    end = time.monotonic() + 10
    while session_members(child.pid) and time.monotonic() < end:
        time.sleep(0.01)
    assert session_members(child.pid) == []
