"""Iterators over one epoch of a loader: `SerialIterator` without workers, and `WorkersIterator` with workers."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rushlight_core.seams.profiler import DATA_WAIT, span

from .collate import tensor_bytes
from .display import Display
from .early import EarlyBatches, predict
from .errors import Failure, LoaderTimeout, WorkerExited, shown
from .fetch import Fetcher, IterableFetcher, Task
from .freed_memory import keep_freed_memory
from .interrupts import KeepInterrupts
from .opened_files import unchanged
from .pinning import Pinner, pin, should_pin
from .random_streams import PreservedStreams
from .state import Progress, digest_of
from .worker import DATA, END
from .worker_pool import WorkerHandle, WorkerPool

if TYPE_CHECKING:
    from .loader import DataLoader

# Limits of memory are read only for batches of at least this size.
LARGE_BYTES = 1 << 20
# The size of a batch that is assumed until a batch has been read.
ASSUMED_BYTES = 256 << 20

__all__ = ["LoaderIterator", "SerialIterator", "WorkersIterator"]


class LoaderIterator:
    """Base class of the iterators that `iter(loader)` returns.

    An exception in the dataset, the sampler or `collate_fn` is raised by `next()`, with a note that names the batch.

    Example:
        >>> import rushlight.utils.data as data
        >>> iterator = iter(data.DataLoader(range(6), batch_size=4))
        >>> isinstance(iterator, LoaderIterator), len(iterator)
        (True, 2)
        >>> next(iterator)
        tensor([0, 1, 2, 3])
    """

    def __init__(self, loader: DataLoader[Any], progress: Progress, order: Iterator[Any] | None) -> None:
        keep_freed_memory()
        self._loader = loader
        self._progress = progress
        self._stats = loader._stats
        self._pins = should_pin(loader)
        self._order = order
        self._iterable = loader._iterable
        self._count_samples = loader._batched
        self._position = progress.samples
        self._left_at = perf_counter()
        self._display: Display | None = None
        if loader.progress or loader.report:
            self._display = Display(
                progress.epoch, progress.batches, _length(loader), loader.progress, loader.report, self._stats
            )

    def __del__(self) -> None:
        display = getattr(self, "_display", None)
        if display is not None:
            display.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with span(DATA_WAIT):
            return self._next()

    def _next(self) -> Any:
        """Return the next batch. Raises StopIteration at the end of the epoch."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._loader)

    def _next_task(self, number: int) -> Task:
        """Create the task for the next batch of a map-style dataset. Raises StopIteration if the sampler is exhausted."""
        assert self._order is not None
        indices = next(self._order)
        if self._count_samples and not isinstance(indices, list):
            indices = list(indices)
        task = Task(number, self._position, indices)
        self._position += len(indices) if self._count_samples else 1
        return task

    def _record_returned(self, task: Task, begun: float) -> None:
        """Update the progress and the statistics for a batch that is about to be returned."""
        self._advance(task)
        stats = self._stats
        stats.batches += 1
        stats.used += begun - self._left_at
        self._left_at = now = perf_counter()
        stats.waited += now - begun
        if self._display is not None:
            self._display.advance()

    def _end_epoch(self) -> None:
        self._progress.finished = True
        if self._display is not None:
            self._display.finish()

    def _advance(self, task: Task) -> None:
        """Add a batch to the counts of batches and samples in the loader's progress."""
        size = len(task.indices) if isinstance(task.indices, list) else task.indices if self._iterable else 1
        self._progress.batches += 1
        self._progress.samples += size or 1
        self._progress.digest = digest_of(task.indices, self._progress.digest)


class SerialIterator(LoaderIterator):
    """Iterator over one epoch of a loader without workers. Batches are read in the calling process.

    An exception in the dataset, the sampler or `collate_fn` is raised by `next()`, with a note that names the batch.

    Example:
        >>> import rushlight.utils.data as data
        >>> iterator = iter(data.DataLoader(range(6), batch_size=4))
        >>> type(iterator).__name__
        'SerialIterator'
        >>> list(iterator)
        [tensor([0, 1, 2, 3]), tensor([4, 5])]
    """

    def __init__(
        self, loader: DataLoader[Any], progress: Progress, order: Iterator[Any] | None, fetcher: Fetcher
    ) -> None:
        super().__init__(loader, progress, order)
        self._fetcher = fetcher
        self._preserved = PreservedStreams() if fetcher.streams is not None else None
        # An iterable dataset cannot read the samples of a batch again.
        self._quiet = loader._quiet if fetcher.streams == "batch" and not self._iterable else None
        fetcher.start_epoch(progress.seed)
        self._to_begin = isinstance(fetcher, IterableFetcher)
        self._ended: set[int] = set()  # lanes that have ended

    def _next(self) -> Any:
        begun = perf_counter()
        progress = self._progress
        if progress.finished:
            raise StopIteration
        while True:
            try:
                task = self._lane_task() if self._iterable else self._next_task(progress.batches)
            except StopIteration:
                self._end_epoch()
                raise
            try:
                data = self._fetch(task)
                break
            except StopIteration:
                self._ended.add(task.lane)
        if self._pins:
            data = pin(data, self._loader.pin_memory_device)
        self._stats.worked += perf_counter() - begun
        self._record_returned(task, begun)
        return data

    def _lane_task(self) -> Task:
        """Create the task for the next batch of an iterable dataset. Raises StopIteration if all lanes have ended."""
        streams, size = self._progress.streams, self._loader.batch_size
        for lane in (*range(self._progress.turn, len(streams)), *range(self._progress.turn)):
            if lane not in self._ended:
                number = streams[lane][0]
                return Task(number, number * (size or 1), size, lane)
        raise StopIteration

    def _fetch(self, task: Task) -> Any:
        fetcher, progress = self._fetcher, self._progress
        try:
            if self._to_begin and isinstance(fetcher, IterableFetcher):
                self._to_begin = False
                with self._preserved or contextlib.nullcontext():
                    for lane, (batches, state) in enumerate(progress.streams):
                        fetcher.start_lane(lane, batches, self._loader.batch_size, state)
            if self._preserved is None:
                data = fetcher.fetch(task)
            elif self._quiet is not None:
                data = self._quiet.fetch(fetcher, task, self._preserved)
            else:
                with self._preserved:
                    data = fetcher.fetch(task)
        except StopIteration:
            raise
        except Exception as error:
            error.add_note(f"in the DataLoader, while {fetcher.doing}")
            self._advance_lane(task)
            self._advance(task)  # the caller may continue with the next batch
            raise
        self._advance_lane(task)
        return data

    def _advance_lane(self, task: Task) -> None:
        if isinstance(self._fetcher, IterableFetcher):
            progress = self._progress
            progress.streams[task.lane] = (task.number + 1, self._fetcher.state(task.lane))
            progress.turn = (task.lane + 1) % len(progress.streams)


class WorkersIterator(LoaderIterator):
    """Iterator over one epoch of a loader whose workers read batches ahead.

    Each batch of a map-style dataset is assigned to the worker with the fewest pending tasks; the contents of
    a batch do not depend on the worker. An iterable dataset is read through several independent iterators, called
    lanes: one for each worker, or as many as a `Stream` defines. Batches are returned from the lanes in turn.
    If batches are pinned, a thread copies the batches that have arrived while the caller uses an earlier batch.

    `next()` raises any exception that occurs in the dataset, the sampler or `collate_fn`. It raises
    LoaderTimeout if no batch arrives within the loader's `timeout`, and WorkerExited if a worker ends
    unexpectedly.

    Example::

        loader = data.DataLoader(dataset, batch_size=4, num_workers=2)
        for batch in loader:  # iter(loader) is a WorkersIterator
            ...
    """

    def __init__(
        self, loader: DataLoader[Any], progress: Progress, order: Iterator[Any] | None, pool: WorkerPool
    ) -> None:
        super().__init__(loader, progress, order)
        self._pool = pool
        self._pinner = Pinner(loader.pin_memory_device) if self._pins else None
        self._in_order = loader.in_order
        self._timeout = loader.timeout or None
        self._room = loader.num_workers * (loader.prefetch_factor or 2)
        self._memory_left = getattr(pool.transport, "memory_left", None)
        self._next_out = self._sent = progress.batches  # the next batch to return, and to assign
        self._ready: dict[int, tuple[Task, Any, Any]] = {}  # read but not yet returned, by number
        self._order_ended = False
        self._turn = progress.turn
        self._sent_of = [batches for batches, _ in progress.streams]  # by lane
        self._ended: set[int] = set()  # lanes that have ended
        early, pool.early = pool.early, None
        if early is not None and self._adopts(early):
            for worker in pool.workers:
                pool.send(worker, ("begun", pool.generation))
        else:
            self._start_epoch()
        self._generation = pool.generation
        pool.iterator = weakref.ref(self)
        self._fill()

    def _start_epoch(self) -> None:
        self._pool.start_epoch(self._progress.seed, self._progress.streams, self._loader.batch_size)

    def _adopts(self, early: EarlyBatches) -> bool:
        """Use the batches that were read early if they are the first batches of this epoch. Return whether they are used."""
        assert self._order is not None
        if self._sent or (self._pool.streams is not None and early.seed != self._progress.seed):
            return False
        begin = list(itertools.islice(self._order, len(early.tasks)))
        if not _same_indices(begin, [task.indices for task in early.tasks]):
            self._order = itertools.chain(begin, self._order)
            return False
        for task in early.tasks:
            self._position += len(task.indices) if self._count_samples else 1
        self._sent = len(early.tasks)
        return True

    def _next(self) -> Any:
        begun = perf_counter()
        if self._progress.finished:
            raise StopIteration
        if self._generation != self._pool.generation:
            raise RuntimeError(
                "this iterator has ended because another one was started with the same persistent workers\n"
                "Use a loader without persistent_workers to run several iterators at the same time."
            )
        if self._pool.stopped:
            raise StopIteration
        if not self._pool.is_own:
            raise RuntimeError(
                "DataLoader: this iterator was created before a fork, and its workers belong to the parent process\n"
                "hint: Create an iterator in the child process."
            )
        try:
            with KeepInterrupts():
                if self._pinner is not None:
                    self._receive_waiting_replies()
                task, data, state = self._take(begun)
                self._fill()
        except StopIteration:
            self._finish()
            raise
        except BaseException:
            # A worker exited, the timeout expired, or Ctrl-C was pressed: the pool cannot be used any more.
            self._pool.stop()
            raise
        if self._iterable:
            self._progress.streams[task.lane] = (task.number + 1, state)
            self._progress.turn = (task.lane + 1) % len(self._sent_of)
        if isinstance(data, Failure):
            self._advance(task)
            raise data.error()
        if self._pinner is not None:
            data = data.result()
        self._record_returned(task, begun)
        return data

    def _take(self, begun: float) -> tuple[Task, Any, Any]:
        """Wait for the next batch. Return its task, its data and the state of the iterator (lane) that read it."""
        while True:
            if self._in_order:
                number = self._next_out
                if number in self._ready:
                    self._next_out += 1
                    return self._ready.pop(number)
            elif self._ready:
                return self._ready.pop(next(iter(self._ready)))
            if not self._ready and not any(worker.tasks for worker in self._pool.workers):
                if self._order_ended:
                    raise StopIteration
                self._fill()
                continue
            if self._in_order and not self._is_pending(number):
                self._next_out += 1  # the worker's stream ended before this batch
                continue
            self._receive_replies(begun)

    def _is_pending(self, number: int) -> bool:
        return any(number in worker.tasks for worker in self._pool.workers)

    def _receive_replies(self, begun: float) -> None:
        """Wait for replies of workers and store their batches. Raises LoaderTimeout if no reply arrives in time."""
        left = None
        if self._timeout is not None:
            left = max(0.0, self._timeout - (perf_counter() - begun))
        replies = self._pool.receive(left)
        if not replies and left is not None and perf_counter() - begun >= (self._timeout or 0):
            raise self._timeout_error()
        self._store(replies)

    def _receive_waiting_replies(self) -> None:
        """Receive the replies that have arrived, so that their batches are pinned while the caller uses an earlier one."""
        # If a worker has ended, this is reported when its batch is needed.
        with contextlib.suppress(WorkerExited):
            while replies := self._pool.receive(0):
                self._store(replies)

    def _store(self, replies: list[tuple[WorkerHandle, Any]]) -> None:
        """Store the batches of replies."""
        for worker, (generation, number, kind, payload, waited, worked, state) in replies:
            if generation != self._generation:
                continue
            task = worker.tasks.pop(number)
            worker.waited += waited
            worker.worked += worked
            self._stats.idle += waited
            self._stats.worked += worked
            if state is not None and not self._iterable and not unchanged(state):
                # The batch was read early, and its files have changed since.
                self._pool.assign(worker, number, task)
                continue
            if kind == END:
                self._ended.add(task.lane)
            else:
                if kind == DATA and self._memory_left is not None:
                    self._loader._batch_bytes = max(self._loader._batch_bytes or 0, tensor_bytes(payload))
                if kind == DATA and self._pinner is not None:
                    payload = self._pinner.start(payload)
                self._ready[number] = (task, payload, state)
            self._fill()

    def _fill(self) -> None:
        """Assign tasks to workers until the number of batches that are read ahead reaches its limit."""
        workers = self._pool.workers
        while not self._order_ended:
            busy = sum(len(worker.tasks) for worker in workers)
            if busy + len(self._ready) >= self._room:
                return
            if (busy or self._ready) and not self._fits(busy + 1):
                return
            if self._iterable:
                lane = self._next_lane()
                if lane is None:
                    self._order_ended = True
                    return
                mine, size = self._sent_of[lane], self._loader.batch_size
                self._sent_of[lane] += 1
                task = Task(mine, mine * (size or 1), size, lane)
                worker = workers[lane % len(workers)]
            else:
                try:
                    task = self._next_task(self._sent)
                except StopIteration:
                    self._order_ended = True
                    return
                worker = min(workers, key=_pending_count)
            self._pool.assign(worker, self._sent, task)
            self._sent += 1

    def _fits(self, count: int) -> bool:
        """Return whether `count` batches, and the samples from which they are collated, fit into the available memory.

        If they do not fit, the loader reads fewer batches ahead. OutOfMemoryError is raised only if a single
        batch does not fit. If memory is limited, each worker reads at most one batch until the size of a
        batch is known."""
        size = self._loader._batch_bytes
        if self._memory_left is None or (size is not None and size < LARGE_BYTES):
            return True
        left = self._memory_left()
        if left is None:
            return True
        workers = len(self._pool.workers)
        if size is None:
            return count <= workers and 2 * count * ASSUMED_BYTES <= left
        # Each worker also has the samples of one batch.
        return (count + min(count, workers)) * size <= left

    def _next_lane(self) -> int | None:
        lanes = len(self._sent_of)
        for _ in range(lanes):
            lane = self._turn
            self._turn = (lane + 1) % lanes
            if lane not in self._ended:
                return lane
        return None

    def _finish(self) -> None:
        self._end_epoch()
        self._stats.worker_times = [(worker.worked, worker.waited) for worker in self._pool.workers]
        self._pool.iterator = _none
        if not self._loader._keeps(self._pool):
            self._pool.stop()
        elif self._pool.is_known and not self._iterable:
            self._read_early()

    def _read_early(self) -> None:
        """Let the workers read the first batches of the next epoch. See Note [Early batches]."""
        pool = self._pool
        if not self._fits(self._room):
            return
        early = pool.early = predict(self._loader, self._room)
        if early is not None:
            count = len(pool.workers)
            pool.start_epoch(early.seed)
            for task in early.tasks:
                pool.assign(pool.workers[task.number % count], task.number, task, early=True)

    def _timeout_error(self) -> LoaderTimeout:
        held = "; ".join(
            f"worker {worker.id} (pid {worker.process.pid}) has not returned batch {task.number}"
            + (f" (samples {shown(task.indices)})" if isinstance(task.indices, list) else "")
            for worker in self._pool.workers
            for task in list(worker.tasks.values())[:1]
        )
        return LoaderTimeout(f"DataLoader timed out: no batch arrived within {self._timeout} seconds\n{held}")


def _length(loader: DataLoader[Any]) -> int | None:
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return None


def _none() -> None:
    return None


def _same_indices(first: list[Any], second: list[Any]) -> bool:
    try:
        return bool(first == second)
    except Exception:  # the result has no truth value, as for lists of tensors
        return False


def _pending_count(worker: WorkerHandle) -> int:
    return len(worker.tasks)
