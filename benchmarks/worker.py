"""A process that times rows on request with its own interpreter. Blocks of two such processes can be interleaved."""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from .harness import Loop, empty_loop, to_numpy
from .library import Library
from .rows import Row
from .suites.micro import CLOCKS


class Worker:
    """A fresh process. python: its interpreter. also: a module that it imports in addition to the library."""

    def __init__(
        self, module: str, clock: str, *, python: str = sys.executable, also: str | None = None
    ) -> None:
        self._connection, other = multiprocessing.Pipe()
        # Without -P, Python would first import from the current folder, which contains this package.
        command = [python, "-m", "benchmarks.worker", str(other.fileno()), module, clock]
        self._process = subprocess.Popen(
            [*command, *([also] if also else [])],
            pass_fds=[other.fileno()],
            cwd=Path(__file__).resolve().parents[1],
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
        other.close()
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def prepare(self, row: Row) -> None:
        """Set up a row; `run` then times its statement."""
        self._ask("prepare", row)

    def run(self, kind: str, count: int) -> int:
        """Return nanoseconds of count calls: of the row ("run") or of an empty loop ("loop")."""
        return int(self._ask(kind, count))

    def result(self, row: Row) -> Any:
        """Return the arrays of the row's value, computed from new operands."""
        return self._ask("result", row)

    def loaded(self, module: str) -> bool:
        """Return whether the process has imported a module."""
        return bool(self._ask("loaded", module))

    def origin(self) -> tuple[str, str]:
        """Return the library's file and version."""
        file, version = self._ask("origin", None)
        return file, version

    def _ask(self, command: str, argument: Any) -> Any:
        self._connection.send((command, argument))
        return self._answer()

    def _answer(self) -> Any:
        try:
            kind, value = self._connection.recv()
        except EOFError:
            raise RuntimeError(f"the process ended with exit code {self._process.wait()}") from None
        if kind == "error":
            raise RuntimeError(value)
        return value

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Remote:
    """A `Subject` in another process."""

    def __init__(self, worker: Worker, kind: str) -> None:
        self.name = kind
        self._worker = worker
        self._kind = kind

    def run(self, count: int) -> int:
        return self._worker.run(self._kind, count)


def serve(connection: Connection, module: str, clock: str, also: str | None) -> None:
    """The process's side: answer requests until the connection closes."""
    subject: Loop | None = None
    gc.disable()  # as `interleave` does for subjects in its own process
    try:
        library = Library(module, 1)
        if also is not None:
            importlib.import_module(also)
        connection.send(("ready", None))
        while True:
            command, argument = connection.recv()
            answer: Any = None
            try:
                if command == "prepare":
                    subject = library.subject(argument, argument.setup, CLOCKS[clock])
                elif command == "result":
                    answer = to_numpy(library.result(argument, argument.setup))
                elif command == "loop":
                    answer = empty_loop(CLOCKS[clock]).run(argument)
                elif command == "loaded":
                    answer = argument in sys.modules
                elif command == "origin":
                    answer = str(library.module.__file__), library.version
                else:
                    assert subject is not None, "a row is prepared before it runs"
                    answer = subject.run(argument)
                connection.send(("answer", answer))
            except Exception as error:
                connection.send(("error", f"{type(error).__name__}: {error}"))
    except EOFError:
        pass  # the parent has finished
    except Exception as error:
        connection.send(("error", f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)
