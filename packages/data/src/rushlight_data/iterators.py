"""One epoch of a loader: read here, or by workers."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rushlight_core.seams.profiler import DATA_WAIT, span

from .crew import Crew, Member
from .errors import Failure, LoaderTimeout, shown
from .fetch import Fetcher, IterableFetcher, Task
from .interrupts import KeepInterrupts
from .pinning import pin, should_pin
from .random_streams import Aside, mix
from .state import Progress
from .worker import END

if TYPE_CHECKING:
    from .loader import DataLoader

__all__ = ["LoaderIterator", "SerialIterator", "WorkersIterator"]


class LoaderIterator:
    """What `iter(loader)` gives."""

    def __init__(self, loader: DataLoader[Any], progress: Progress, order: Iterator[Any] | None) -> None:
        self._loader = loader
        self._progress = progress
        self._stats = loader._stats
        self._pins = should_pin(loader)
        self._order = order
        self._iterable = loader._iterable
        self._count_samples = loader._batched
        self._position = progress.samples
        self._left_at = perf_counter()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with span(DATA_WAIT):
            return self._next()

    def _next(self) -> Any:
        """The next batch."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._loader)

    def _next_task(self, number: int) -> Task:
        """The next batch of a map-style dataset. Raises StopIteration at the sampler's end."""
        assert self._order is not None
        indices = next(self._order)
        if self._count_samples and not isinstance(indices, list):
            indices = list(indices)
        task = Task(number, self._position, indices)
        self._position += len(indices) if self._count_samples else 1
        return task

    def _taken(self, task: Task, begun: float) -> None:
        """Account for a batch that is about to be given out."""
        self._passed(task)
        stats = self._stats
        stats.batches += 1
        stats.used += begun - self._left_at
        self._left_at = now = perf_counter()
        stats.waited += now - begun

    def _passed(self, task: Task) -> None:
        """Note that the epoch has got beyond a batch."""
        size = len(task.indices) if isinstance(task.indices, list) else task.indices if self._iterable else 1
        self._progress.batches += 1
        self._progress.samples += size or 1


class SerialIterator(LoaderIterator):
    """Batches read by the process that takes them."""

    def __init__(
        self, loader: DataLoader[Any], progress: Progress, order: Iterator[Any] | None, fetcher: Fetcher
    ) -> None:
        super().__init__(loader, progress, order)
        self._fetcher = fetcher
        self._aside = Aside() if fetcher.streams is not None else None
        if isinstance(fetcher, IterableFetcher):
            fetcher.start_epoch(mix(progress.seed, 0))
            self._to_resume = progress.batches > 0
        else:
            fetcher.start_epoch(progress.seed)
            self._to_resume = False

    def _next(self) -> Any:
        begun = perf_counter()
        progress = self._progress
        if progress.finished:
            raise StopIteration
        try:
            if self._iterable:
                task = Task(progress.batches, progress.samples, self._loader.batch_size)
            else:
                task = self._next_task(progress.batches)
        except StopIteration:
            progress.finished = True
            raise
        if self._aside is None:
            data = self._fetch(task)
        else:
            with self._aside:
                data = self._fetch(task)
        if self._pins:
            data = pin(data, self._loader.pin_memory_device)
        if isinstance(self._fetcher, IterableFetcher):
            progress.streams = [(progress.batches + 1, self._fetcher.state())]
        self._stats.worked += perf_counter() - begun
        self._taken(task, begun)
        return data

    def _fetch(self, task: Task) -> Any:
        fetcher = self._fetcher
        try:
            if self._to_resume and isinstance(fetcher, IterableFetcher):
                self._to_resume = False
                fetcher.resume(self._progress.batches, self._loader.batch_size, self._progress.streams[0][1])
            return fetcher.fetch(task)
        except StopIteration:
            self._progress.finished = True
            raise
        except Exception as error:
            error.add_note(f"in the DataLoader, while {fetcher.doing}")
            self._passed(task)  # the loop may go on with the next batch
            raise


class WorkersIterator(LoaderIterator):
    """Batches read ahead by workers. Batch n is given to the worker with the least to do; which one that is
    does not change what is in it. The shares of an iterable dataset take turns."""

    def __init__(
        self, loader: DataLoader[Any], progress: Progress, order: Iterator[Any] | None, crew: Crew
    ) -> None:
        super().__init__(loader, progress, order)
        self._crew = crew
        crew.generation += 1
        self._generation = crew.generation
        self._in_order = loader.in_order
        self._timeout = loader.timeout or None
        self._room = loader.num_workers * (loader.prefetch_factor or 2)
        self._given_out = self._sent = progress.batches  # numbers of the next batch to give out, and to send
        self._answers: dict[int, tuple[Task, Any, Member, Any]] = {}  # read, not given out; by number
        self._order_ended = False
        self._turn = progress.turn
        self._sent_of = [batches for batches, _ in progress.streams]
        for member in crew.members:
            member.tasks.clear()
            member.ended = False
            if self._iterable:
                batches, state = progress.streams[member.id]
                seed = mix(progress.seed, member.id)
            else:
                batches, state, seed = 0, None, progress.seed
            crew.send(member, ("epoch", self._generation, seed, batches, loader.batch_size, state))
        self._fill()

    def _next(self) -> Any:
        begun = perf_counter()
        if self._progress.finished:
            raise StopIteration
        if self._generation != self._crew.generation:
            raise RuntimeError(
                "this iterator has ended: another was begun, and both would use the same persistent workers\n"
                "Use a loader without persistent_workers for iterations at the same time."
            )
        if self._crew.stopped:
            raise StopIteration
        try:
            with KeepInterrupts():
                task, answer, member, state = self._take(begun)
                self._fill()
        except StopIteration:
            self._finish()
            raise
        except BaseException:
            # A worker is gone, nothing came in time, or Ctrl-C: nothing of this crew is worth keeping.
            self._crew.stop()
            raise
        if isinstance(answer, Failure):
            self._passed(task)
            raise answer.error()
        if self._pins:
            answer = pin(answer, self._loader.pin_memory_device)
        if self._iterable:
            self._progress.streams[member.id] = (task.number + 1, state)
            self._progress.turn = (member.id + 1) % len(self._crew.members)
        self._taken(task, begun)
        return answer

    def _take(self, begun: float) -> tuple[Task, Any, Member, Any]:
        """The next answer, waiting for it."""
        while True:
            if self._in_order:
                number = self._given_out
                if number in self._answers:
                    self._given_out += 1
                    return self._answers.pop(number)
            elif self._answers:
                return self._answers.pop(next(iter(self._answers)))
            if not self._answers and not any(member.tasks for member in self._crew.members):
                if self._order_ended or all(member.ended for member in self._crew.members):
                    raise StopIteration
                self._fill()
                continue
            if self._in_order and not self._is_under_way(number):
                self._given_out += 1  # it was at the end of a worker's stream
                continue
            self._hear(begun)

    def _is_under_way(self, number: int) -> bool:
        return any(number in member.tasks for member in self._crew.members)

    def _hear(self, begun: float) -> None:
        """Wait for answers."""
        left = None
        if self._timeout is not None:
            left = max(0.0, self._timeout - (perf_counter() - begun))
        replies = self._crew.receive(left)
        if not replies and left is not None and perf_counter() - begun >= (self._timeout or 0):
            raise self._too_late()
        for member, (generation, number, kind, payload, waited, worked, state) in replies:
            if generation != self._generation:
                continue
            task = member.tasks.pop(number)
            member.waited += waited
            member.worked += worked
            self._stats.idle += waited
            self._stats.worked += worked
            if kind == END:
                member.ended = True
            else:
                self._answers[number] = (task, payload, member, state)
            self._fill()

    def _fill(self) -> None:
        """Give workers something to do, as long as not too much is read ahead."""
        members = self._crew.members
        while not self._order_ended:
            busy = sum(len(member.tasks) for member in members)
            if busy + len(self._answers) >= self._room:
                return
            if self._iterable:
                member = self._next_in_turn()
                if member is None:
                    self._order_ended = True
                    return
                mine = self._sent_of[member.id]
                self._sent_of[member.id] += 1
                task = Task(mine, mine * (self._loader.batch_size or 1), self._loader.batch_size)
            else:
                try:
                    task = self._next_task(self._sent)
                except StopIteration:
                    self._order_ended = True
                    return
                member = min(members, key=_load)
            member.tasks[self._sent] = task
            self._crew.send(member, ("task", self._generation, self._sent, task))
            self._sent += 1

    def _next_in_turn(self) -> Member | None:
        members = self._crew.members
        for _ in members:
            member = members[self._turn]
            self._turn = (self._turn + 1) % len(members)
            if not member.ended:
                return member
        return None

    def _finish(self) -> None:
        self._progress.finished = True
        self._stats.worker_times = [(member.worked, member.waited) for member in self._crew.members]
        if not self._loader.persistent_workers:
            self._crew.stop()

    def _too_late(self) -> LoaderTimeout:
        held = "; ".join(
            f"worker {member.id} (pid {member.process.pid}) holds batch {task.number}"
            + (f" (samples {shown(task.indices)})" if isinstance(task.indices, list) else "")
            for member in self._crew.members
            for task in list(member.tasks.values())[:1]
        )
        return LoaderTimeout(f"DataLoader timed out: no batch came within {self._timeout} seconds\n{held}")


def _load(member: Member) -> int:
    return len(member.tasks)
