"""The exit of the interpreter while daemon threads compute. See Note [Interpreter exit] in src/python/gil.h."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading, time
import numpy as np
import rushlight_core as core

class Mine(core.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})

def run():
    a = core.rand(64, 64)
    mine = a.as_subclass(Mine)
    while True:
        begun.set()
        (a @ a).sum().item()
        core.linalg.inv(a + 3 * core.eye(64))
        core.from_numpy(np.ones(10)).tolist()
        core.sort(a)
        mine + 1

begun = threading.Event()
for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
begun.wait()
time.sleep(0.05)
"""


def test_daemon_threads_in_the_middle_of_operators() -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE, text=True) for _ in range(8)
    ]
    ended = [(process.communicate(timeout=60)[1], process.returncode) for process in running]
    assert ended == [("", 0)] * len(running)
