"""The loader's side of its workers: starting, hearing, stopping them, and noticing that one is gone."""

from __future__ import annotations

import contextlib
import copy
import os
import select
import time
import warnings
import weakref
from typing import Any

from .errors import exited
from .fetch import Fetcher, Task
from .interrupts import raise_kept_interrupt
from .worker import Setup, run

# A worker in the middle of a sample gets so many seconds to finish it before it is killed.
STOP_SECONDS = 2.0

# The loader's ends of all pipes. A forked child must not keep copies: a worker learns from the end of its
# pipe that the loader is gone, also when that was killed.
_open_ends: weakref.WeakSet[Any] = weakref.WeakSet()


def _close_in_child() -> None:
    for end in list(_open_ends):
        end.close()
    _open_ends.clear()


os.register_at_fork(after_in_child=_close_in_child)


class Member:
    """One worker, seen from the loader. `tasks` are those it has been given and not answered, by number."""

    def __init__(self, worker_id: int, conn: Any, process: Any) -> None:
        self.id = worker_id
        self.conn = conn
        self.process = process
        self.tasks: dict[int, Task] = {}
        self.ended = False  # its stream, in this epoch
        self.waited = self.worked = 0.0
        # The standard sentinel is a pipe that a worker's own children hold open: a killed worker would seem
        # to live for as long as they do.
        self.pidfd: int | None = None
        if process.pid is not None:
            with contextlib.suppress(OSError):
                self.pidfd = os.pidfd_open(process.pid)

    @property
    def sentinel(self) -> int:
        """A descriptor that is readable once the worker has ended."""
        return int(self.process.sentinel) if self.pidfd is None else self.pidfd

    def join(self, timeout: float) -> None:
        """Wait for the worker's end, at most `timeout` seconds; afterwards `process.exitcode` is known."""
        poller = select.poll()
        poller.register(self.sentinel, select.POLLIN)
        if poller.poll(timeout * 1000):
            self.process.join(
                timeout
            )  # collects the exit code; a thread says that it ends while it still holds its frames

    def forget(self) -> None:
        """Close what belongs to the loader's side."""
        self.conn.close()
        _open_ends.discard(self.conn)
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


class Crew:
    """The workers of one loader, started by the constructor. `receive` raises what makes it impossible to go
    on."""

    def __init__(
        self, num_workers: int, fetcher: Fetcher, seed: int, init_fn: Any, transport: Any, context: Any
    ) -> None:
        self.generation = 0
        self.members: list[Member] = []
        self._by_fd: dict[int, Member] = {}
        self._poller = select.poll()
        self._stop = weakref.finalize(self, _stop, self.members, os.getpid())
        try:
            for i in range(num_workers):
                setup = Setup(i, num_workers, seed + i, copy.copy(fetcher), init_fn, transport)
                self._start(setup, transport, context)
        except BaseException:
            self.stop()
            raise

    def _start(self, setup: Setup, transport: Any, context: Any) -> None:
        ours, theirs = transport.pipe()
        _open_ends.add(ours)
        name = f"DataLoaderWorker-{setup.worker_id}"
        process = transport.worker(run, (theirs, setup), name=name, context=context)
        with warnings.catch_warnings():
            # Python warns of forking beside threads. Core's threads are made for it: the child forgets them.
            warnings.filterwarnings(
                "ignore", message=".*multi-threaded, use of fork.*", category=DeprecationWarning
            )
            process.start()
        if transport.isolated:
            theirs.close()
        member = Member(setup.worker_id, ours, process)
        self.members.append(member)
        for fd in (ours.fileno(), member.sentinel):
            self._by_fd[fd] = member
            self._poller.register(fd, select.POLLIN)

    @property
    def stopped(self) -> bool:
        return not self._stop.alive

    def send(self, member: Member, message: Any) -> None:
        """Send to a worker; if it is gone, `receive` will tell."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            member.conn.send(message)

    def receive(self, timeout: float | None) -> list[tuple[Member, Any]]:
        """What workers have sent, waiting for something at most `timeout` seconds. Raises WorkerExited."""
        raise_kept_interrupt()
        ready = self._poller.poll(None if timeout is None else timeout * 1000)
        replies = []
        for member in {id(member): member for member in (self._by_fd[fd] for fd, _ in ready)}.values():
            try:
                # What a worker has sent is read, all of it, before its end is noticed.
                if member.conn.poll():
                    replies.append((member, member.conn.recv()))
                    continue
            except (EOFError, OSError):  # OSError: it ended within a message
                pass
            if not replies:
                self._lost(member)
        return replies

    def _lost(self, member: Member) -> None:
        member.join(STOP_SECONDS)
        tasks = member.tasks.values()
        lost = [
            (task.number, task.indices if isinstance(task.indices, list) else [task.indices])
            for task in tasks
        ]
        raise exited(member.id, member.process.pid, member.process.exitcode, lost)

    def stop(self) -> None:
        """End all workers and wait until they have ended."""
        self._stop()


def _stop(members: list[Member], pid: int) -> None:
    # Also called at exit, and in a forked child, whose workers they are not.
    if os.getpid() != pid:
        return
    for member in members:
        with contextlib.suppress(OSError):
            member.conn.send(None)
            member.conn.close()
    deadline = time.monotonic() + STOP_SECONDS
    for member in members:
        member.join(max(0.0, deadline - time.monotonic()))
        if member.process.is_alive():
            member.process.kill()
            member.join(STOP_SECONDS)
        member.forget()
