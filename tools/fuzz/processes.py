"""Run a library in a separate process, which may crash or hang."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import traceback
from dataclasses import dataclass
from typing import Any

from fuzz.execute import Machine, Observation
from fuzz.follow import WAYS, Follower, Keeper
from fuzz.generate import Generator
from fuzz.operators import Operator
from fuzz.program import Program

MEMORY = 6 << 30  # of a process; programs of small tensors gain nothing from more
STARTING = 120.0  # seconds of CPU time for imports
# Seconds after which a process that waits without computing, as for a lock, is ended. A loaded machine may take that long.
WAITING = 900.0


@dataclass(frozen=True)
class Ended:
    """The result if a process did not answer: it ended, exceeded a time limit, or could not generate the program."""

    kind: str  # crash, hang or mistake
    text: str


def _limit(seconds: float) -> None:
    """End this process after this many more seconds of CPU time, so that other programs do not shorten the limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)  # SIGPROF, which ends a process that does not handle it


def _serve(
    connection: Any, library: str, operators: list[Operator], time_limit: float, extremes: bool
) -> None:
    """Answer programs with observations until the other end is closed."""
    _limit(STARTING)
    # Suppress the output of a crash, which would appear in the middle of the report.
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    module = importlib.import_module(library)
    if hasattr(module, "set_num_threads"):
        module.set_num_threads(1)
    machine = Machine(module)
    generator = Generator(operators, machine, extremes)
    connection.send("ready")
    while True:
        try:
            kind, what = connection.recv()
        except EOFError:
            return
        _limit(time_limit)
        if kind == "make":
            try:
                program = generator.program(*what)
            except Exception:
                connection.send(Ended("mistake", traceback.format_exc()))
                continue
            connection.send((program, machine.run(program)))
        elif kind == "is_defined":
            connection.send(generator.is_defined(what))
        elif kind == "follow":
            program, steps = what
            connection.send(Follower(module, steps).run(program))
        elif kind == "keep":
            connection.send(Keeper(module).run(what))
        elif kind in WAYS:
            connection.send(_otherwise(kind, module, what))
        else:
            connection.send(machine.run(what))


def _otherwise(way: str, module: Any, program: Program) -> Observation:
    try:
        return WAYS[way](module).run(program)
    except Exception as error:  # a library may lack this method
        return Observation(error=f"{type(error).__name__}: {error}")


class Process:
    """Runs programs with a library in a process that is restarted whenever it has ended.

    A request may take `time_limit` seconds of the process's CPU time, and `waiting` seconds in all.
    """

    def __init__(
        self,
        library: str,
        operators: list[Operator],
        time_limit: float = 20.0,
        extremes: bool = False,
        waiting: float = WAITING,
    ) -> None:
        self.library, self.operators, self.extremes = library, operators, extremes
        self.time_limit, self.waiting = time_limit, waiting
        self._process: Any = None
        self._connection: Any = None
        self.starts = 0

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        args = (theirs, self.library, self.operators, self.time_limit, self.extremes)
        self._process = context.Process(target=_serve, args=args, daemon=True)
        self._process.start()
        theirs.close()
        self.starts += 1
        try:
            ready = self._connection.poll(self.waiting) and self._connection.recv() == "ready"
        except EOFError:
            ready = False
        if not ready:
            self.close()
            raise RuntimeError(f"the process of {self.library} did not start")

    def ask(self, kind: str, what: Any) -> Any:
        self.send(kind, what)
        return self.receive()

    def send(self, kind: str, what: Any) -> None:
        if self._process is None:
            self._start()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # receive() reports it
            self._connection.send((kind, what))

    def receive(self) -> Any:
        """Return the answer, or the reason why the process ended."""
        try:
            if self._connection.poll(self.waiting):
                return self._connection.recv()
            kind, text = "hang", f"no answer within {self.waiting:g} s"
        except (EOFError, ConnectionResetError):
            self._process.join(10)
            code = self._process.exitcode
            name = signal.Signals(-code).name if code is not None and code < 0 else f"exit status {code}"
            kind, text = "crash", f"the process ended: {name}"
            if code == -signal.SIGPROF:
                kind, text = "hang", f"no answer within {self.time_limit:g} s of CPU time"
        self.close()
        return Ended(kind, text)

    def run(self, program: Program) -> Observation | Ended:
        found: Observation | Ended = self.ask("run", program)
        return found

    def follow(self, program: Program, steps: list[list[Any]]) -> Observation | Ended:
        """Run the program with the rounding errors of another observation."""
        found: Observation | Ended = self.ask("follow", (program, steps))
        return found

    def keep(self, program: Program) -> Observation | Ended:
        """Run the program with copies of the tensors that are saved for the backward pass."""
        found: Observation | Ended = self.ask("keep", program)
        return found

    def otherwise(self, way: str, program: Program) -> Observation | Ended:
        """Run the program in one of the other ways of follow.py."""
        found: Observation | Ended = self.ask(way, program)
        return found

    def close(self) -> None:
        if self._process is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._process = None


def importable(folder: str) -> None:
    """Let processes that this process starts import this package."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
