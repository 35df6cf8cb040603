"""The parent's side of a training process: start it, request steps, and end it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from .protocol import VARIABLES, Request, Timing

_ROOT = Path(__file__).resolve().parents[2]


class FailedError(RuntimeError):
    """Raised if a process cannot be started, or if it ends, raises an error or does not answer; the text has the reason."""


class Training:
    """A process that trains.

    python: its interpreter, which may belong to another environment. patience: seconds to wait for an answer; compilers take
    minutes for the first step.
    """

    def __init__(self, request: Request, python: str = sys.executable, patience: float = 600.0) -> None:
        self.request = request
        self._patience = patience
        self._connection, other = multiprocessing.Pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        for switch in request.switches():
            environment |= VARIABLES.get(switch, {})
        try:
            self._process = subprocess.Popen(
                [python, "-m", "benchmarks.table1.trainer", str(other.fileno())],
                pass_fds=[other.fileno()],
                cwd=_ROOT,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
            )
        except OSError as error:
            self._connection.close()
            self._errors.close()
            raise FailedError(f"{python} cannot be started: {error.strerror}") from error
        finally:
            other.close()
        try:
            self._connection.send(request)
            self._answer()
        except BaseException:
            self.close()
            raise

    def step(self) -> Timing:
        """Request one training step, and return its measurements."""
        timing = self._ask("step")
        assert isinstance(timing, Timing)
        return timing

    def peak_memory(self) -> int:
        """Return the process's largest resident memory while it trained, in bytes."""
        size = self._ask("memory")
        assert isinstance(size, int)
        return size

    def _ask(self, command: str) -> object:
        try:
            self._connection.send(command)
        except BrokenPipeError:
            raise self._ended() from None
        return self._answer()

    def _answer(self) -> object:
        try:
            if not self._connection.poll(self._patience):
                raise FailedError(f"the process did not answer within {self._patience:.0f} s")
            kind, value = self._connection.recv()
        except (EOFError, ConnectionResetError):
            raise self._ended() from None
        if kind == "error":
            raise FailedError(value)
        return value

    def _ended(self) -> FailedError:
        code = self._process.wait()
        self._errors.seek(0)
        lines = [
            line.strip() for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()
        ]
        return FailedError(": ".join([f"the process ended with exit code {code}", *lines[-1:]]))

    def __enter__(self) -> Training:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; kill it if it does not end by itself."""
        self._connection.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
