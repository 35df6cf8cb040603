"""Run work in separate processes. If a process crashes or takes too long, only the result of its item is lost.

A worker reads one name per line, and writes one JSON object per line. While it works, it records each step in a small file
that is mapped into memory: after a crash, the last note shows the step.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NOTE = 1024  # bytes


class Note:
    """The last step of a worker, readable after the worker has ended."""

    def __init__(self, path: Path) -> None:
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), NOTE)

    def write(self, text: str) -> None:
        self._memory[:] = text.encode()[:NOTE].ljust(NOTE, b"\0")

    def read(self) -> str:
        return self._memory[:].rstrip(b"\0").decode(errors="replace")


def work(function: Callable[[str, Callable[[str], None]], dict[str, Any]], note: Path) -> None:
    """Run a worker's main loop: call `function(name, note)` for each name read. Other output to stdout goes to stderr."""
    results = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    notes = Note(note)
    for line in sys.stdin:
        notes.write("")
        results.write(json.dumps(function(line.strip(), notes.write)) + "\n")
        results.flush()


class Worker:
    """Runs samples in one process, which is replaced after a crash."""

    def __init__(self, command: list[str], seconds: float, folder: Path) -> None:
        self._command, self._seconds = command, seconds
        handle, path = tempfile.mkstemp(dir=folder)
        os.truncate(handle, NOTE)
        os.close(handle)
        self._note_path, self._note = Path(path), Note(Path(path))
        self._process: subprocess.Popen[str] | None = None

    def ask(self, name: str) -> dict[str, Any]:
        """Return the answer of a worker, or {"crash": how it ended}."""
        if self._process is None:
            self._process = subprocess.Popen(
                [*self._command, str(self._note_path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self._seconds, end)
        timer.start()
        try:
            process.stdin.write(name + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if line.endswith("\n"):
            return dict(json.loads(line))
        self.close()
        how = f"took more than {self._seconds:.0f} s" if late.is_set() else _ending(process.returncode)
        return {"crash": f"{how}; last: {self._note.read() or 'the start of the process'}"}

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
            self._process = None


def run(
    names: list[str], command: list[str], *, jobs: int = 1, seconds: float = 120.0
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each name's answer, or {"crash": …}, as it arrives. `command` returns a worker's command for a note's path."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)

    with tempfile.TemporaryDirectory() as folder:

        def loop() -> None:
            worker = Worker(command, seconds, Path(folder))
            try:
                while True:
                    name = waiting.get_nowait()
                    done.put((name, worker.ask(name)))
            except queue.Empty:
                worker.close()

        threads = [threading.Thread(target=loop) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for _ in names:
            yield done.get()
        for thread in threads:
            thread.join()


def _ending(code: int) -> str:
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"
