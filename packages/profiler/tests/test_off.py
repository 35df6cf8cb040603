"""While no profile records, core behaves as if the profiler were not installed."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import ctypes, sys
import rushlight_core as core
library = ctypes.CDLL(core.__path__[0] + "/lib/librushlight.so")
# rushlight::fallback_of(Stage::Profiler), which is stage 8, and the pointer to the observer, which hooks read.
fallback_of = library._ZN9rushlight11fallback_ofENS_5StageE
fallback_of.restype = ctypes.c_void_p
def state():
    return fallback_of(8), ctypes.c_void_p.in_dll(library, "_ZN9rushlight6detail8observerE").value

assert state() == (None, None)
import rushlight_profiler
assert state() == (None, None), "importing it changed dispatch"
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"numpy", "json", "inspect", "dataclasses"}, loaded
x = core.tensor([1.0])
with rushlight_profiler.record_function("off"):
    x + x
assert state() == (None, None), "record_function changed dispatch while nobody records"
with rushlight_profiler.profile() as prof:
    x + x
    assert None not in state()
assert len(prof.events()) == 1
assert state()[1] is None, "an observer was left behind"
"""


def test_importing_changes_nothing(python_path):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": python_path},
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
