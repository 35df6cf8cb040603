"""The parent's side of a training process: starts it, asks for steps, ends it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from .protocol import Request, Timing

_ROOT = Path(__file__).resolve().parents[2]


class FailedError(RuntimeError):
    """A process that could not be started, or that ended or raised while it trained; the text says why."""


class Training:
    """A process that trains. python: its interpreter, which may be another environment's."""

    def __init__(self, request: Request, python: str = sys.executable) -> None:
        self.request = request
        self._connection, other = multiprocessing.Pipe()
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.table1.trainer", str(other.fileno())],
            pass_fds=[other.fileno()],
            cwd=_ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        other.close()
        try:
            self._connection.send(request)
            self._answer()
        except BaseException:
            self.close()
            raise

    def step(self) -> Timing:
        """One training step."""
        timing = self._ask("step")
        assert isinstance(timing, Timing)
        return timing

    def peak_memory(self) -> int:
        """The process's largest resident memory so far, in bytes."""
        size = self._ask("memory")
        assert isinstance(size, int)
        return size

    def _ask(self, command: str) -> object:
        try:
            self._connection.send(command)
        except BrokenPipeError:
            raise FailedError(f"the process ended with exit code {self._process.wait()}") from None
        return self._answer()

    def _answer(self) -> object:
        try:
            kind, value = self._connection.recv()
        except (EOFError, ConnectionResetError):
            raise FailedError(f"the process ended with exit code {self._process.wait()}") from None
        if kind == "error":
            raise FailedError(value)
        return value

    def __enter__(self) -> Training:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process, by force if it does not listen."""
        self._connection.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
