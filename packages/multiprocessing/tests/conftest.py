"""Fixtures: a watchdog, scripts that run as separate programs, and counts of the resources of a process."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rushlight_core as core
import rushlight_multiprocessing as mp

sys.path.insert(0, str(Path(__file__).parent))  # ranks.py

# If rushlight-autograd is installed, tensors are also tested with gradients.
with contextlib.suppress(ModuleNotFoundError):
    import rushlight_autograd  # noqa: F401

WATCHDOG_SECONDS = 60

# Forked children have no watchdog thread, so an alarm ends them.
os.register_at_fork(after_in_child=lambda: signal.alarm(WATCHDOG_SECONDS))


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """End the run with a traceback of every thread if a test hangs."""
    faulthandler.dump_traceback_later(WATCHDOG_SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., str]:
    """Run a program and return its output. The test fails if the program fails or does not end."""

    def run(source: str, *args: str) -> str:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(source))
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", str(script), *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=WATCHDOG_SECONDS - 10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"the program did not end\n{out}\n{err}")
        assert process.returncode == 0, f"exit code {process.returncode}\n{out}\n{err}"
        return out

    return run


class Held:
    """Counts the resources of this process."""

    @staticmethod
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd")) - 1  # without the descriptor of the list itself

    @staticmethod
    def mappings() -> int:
        """Count the mapped arenas. The data and the table of an arena are mapped separately."""
        lines = Path("/proc/self/maps").read_text().splitlines()
        return len({line.split()[4] for line in lines if "memfd:rushlight" in line})

    @staticmethod
    def children() -> list[str]:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


@pytest.fixture
def held() -> Held:
    """Return counts of the resources of this process. Reference cycles of earlier tests (pytest's tracebacks) are
    collected now. Nothing is collected later, because dropped objects must be freed immediately."""
    gc.collect()
    return Held()


@pytest.fixture
def tensors_of_processes() -> Callable[[int], list[core.Tensor]]:
    """Return a function that receives a tensor from each of `n` processes. Every tensor is in another arena."""

    def receive(n: int) -> list[core.Tensor]:
        reader, writer = mp.Pipe(duplex=False)
        tensors = []
        for i in range(n):
            process = mp.get_context("fork").Process(
                target=lambda i=i: writer.send(core.full((3,), float(i)))
            )
            process.start()
            tensors.append(reader.recv())
            process.join()
        return tensors

    return receive
