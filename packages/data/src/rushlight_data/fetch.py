"""Fetchers: objects that read batches, either in a worker or, if there are no workers, in the training process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from .dataset import batch_method, read_samples
from .errors import named
from .marks import COLLATING, READING_AT_ONCE
from .random_streams import mix, seed_streams
from .streams import Stream

Streams = Literal["batch", "sample"] | None


class Task:
    """A batch to be read.

    `number` is the batch's position in the epoch, and `position` is the position of its first sample. `indices` is a
    list of indices, or a single index if the loader does not batch. If the dataset is iterable, `lane` is the part of the
    stream that contains the batch, and `number` and `position` count only the batches and samples of this lane."""

    __slots__ = ("indices", "lane", "number", "position")

    def __init__(self, number: int, position: int, indices: Any, lane: int = 0) -> None:
        self.number: int = number
        self.position: int = position
        self.indices: Any = indices
        self.lane: int = lane

    def __reduce__(self) -> Any:
        return Task, (self.number, self.position, self.indices, self.lane)


class Fetcher:
    """An object that reads batches of a dataset.

    After an exception, `doing` describes the step that failed, and `index` is a tuple with the index of the sample, or an
    empty tuple if the step concerns the whole batch."""

    def __init__(
        self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], streams: Streams
    ) -> None:
        self.dataset = dataset
        self.batched = batched
        self.collate_fn = collate_fn
        self.streams = streams
        self.seed: int = 0
        # Seeds the streams that a batch draws from.
        self.reseed: Callable[[int], None] = seed_streams
        self.doing: str = "starting"
        self.index: tuple[Any, ...] = ()
        # Called with the number of the batch and the position of a sample in it, before the sample is read. The position
        # is READING_AT_ONCE or COLLATING if all samples of the batch are read or collated.
        self.reading: Callable[[int, int], None] | None = None
        # Called between samples; returns whether the loader has cancelled the batch.
        self.stopped: Callable[[], bool] | None = None

    def start_epoch(self, seed: int) -> None:
        """Begin an epoch whose random streams derive from `seed`."""
        self.seed = seed

    def fetch(self, task: Task) -> Any:
        """Read and collate the batch that `task` describes.

        Raises any exception that the dataset or `collate_fn` raises, and StopIteration at the end of a
        stream.
        """
        raise NotImplementedError

    def _seed_batch(self, task: Task) -> None:
        self.index = ()
        if self.streams == "batch":
            self.reseed(mix(self.seed, task.number))
        elif self.streams == "sample":
            self.reseed(mix(self.seed, task.position))

    def _collate(self, task: Task, samples: Any) -> Any:
        if self.reading is not None:
            self.reading(task.number, COLLATING)
        try:
            return self.collate_fn(samples)
        except BaseException as error:
            self.doing = f"collating batch {task.number}"
            self.index = ()
            _convert_stop_iteration(error)
            raise


class MapFetcher(Fetcher):
    """A reader of batches of a map-style dataset."""

    def __init__(
        self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], streams: Streams, fast: bool
    ) -> None:
        super().__init__(dataset, batched, collate_fn, streams)
        per_sample = streams == "sample"
        fetched_at_once = batched and fast and not per_sample
        self.read_batch: Callable[[Sequence[int]], Any] | None = (
            batch_method(dataset) if fetched_at_once else None
        )
        self.has_getitems: bool = not per_sample and getattr(dataset, "__getitems__", None) is not None

    def fetch(self, task: Task) -> Any:
        self._seed_batch(task)
        indices = task.indices
        if not self.batched:
            return self._collate(task, self._read_one(task, indices))
        if self.read_batch is not None:
            if self.reading is not None:
                self.reading(task.number, READING_AT_ONCE)
            try:
                return self.read_batch(indices)
            except Exception:
                # Read the samples one by one below, which finds the sample that fails and supports indices of
                # any type.
                self._seed_batch(task)
        samples = self._read_many(task, indices) if self.has_getitems else self._read_each(task, indices)
        return self._collate(task, samples)

    def _read_one(self, task: Task, index: Any) -> Any:
        if self.reading is not None:
            self.reading(task.number, 0)
        try:
            return self.dataset[index]
        except BaseException as error:
            self._record_failure(task, index)
            _convert_stop_iteration(error)
            raise

    def _read_many(self, task: Task, indices: list[Any]) -> list[Any]:
        """Return the samples of a batch from a dataset that has `__getitems__`.

        If `read_samples` reads a single sample, it first calls `begin` with the sample's position in the
        batch. It calls `begin(-1)` before it reads several samples in one call, and after the last single
        sample.
        """
        stopped, reading, current = self.stopped, self.reading, READING_AT_ONCE

        def begin(position: int) -> None:
            nonlocal current
            if stopped is not None and stopped():
                raise Abandoned
            current = position
            if reading is not None:
                reading(task.number, position)

        try:
            samples = read_samples(self.dataset, indices, begin)
            if len(samples) != len(indices):
                raise ValueError(
                    f"__getitems__(indices): must return one sample for each of {len(indices)} indices, got {len(samples)}"
                )
        except BaseException as error:
            if current >= 0:
                self._record_failure(task, indices[current])
            else:
                self.doing = f"reading batch {task.number} at once ({named(indices)})"
            _convert_stop_iteration(error)
            raise
        return samples

    def _read_each(self, task: Task, indices: Sequence[Any]) -> list[Any]:
        dataset, stopped, index = self.dataset, self.stopped, None
        per_sample, reading = self.streams == "sample", self.reading
        samples: list[Any] = []
        try:
            if stopped is None and reading is None and not per_sample:
                for index in indices:
                    samples.append(dataset[index])
                return samples
            for offset, index in enumerate(indices):
                if stopped is not None and stopped():
                    raise Abandoned
                if per_sample and offset:
                    seed_streams(mix(self.seed, task.position + offset))
                if reading is not None:
                    reading(task.number, offset)
                samples.append(dataset[index])
        except BaseException as error:
            self._record_failure(task, index)
            _convert_stop_iteration(error)
            raise
        return samples

    def _record_failure(self, task: Task, index: Any) -> None:
        self.doing: str = f"reading sample {index!r} of batch {task.number}"
        self.index: Any = (index,)


class IterableFetcher(Fetcher):
    """A reader of batches of an iterable dataset.

    The attribute `indices` of a task is the number of samples in the batch, or None if the loader does not batch."""

    def __init__(
        self, dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], streams: Streams, drop_last: bool
    ) -> None:
        super().__init__(dataset, batched, collate_fn, streams)
        self.drop_last = drop_last
        self.epoch_seed: int = 0
        self.seeds: dict[int, int] = {}  # by lane
        self.iterators: dict[int, Iterator[Any]] = {}  # by lane

    def start_epoch(self, seed: int) -> None:
        # Create new dicts, because the fetchers of worker threads are shallow copies of one fetcher.
        self.epoch_seed, self.seeds, self.iterators = seed, {}, {}

    def start_lane(self, lane: int, batches: int, batch: int | None, state: Any) -> None:
        """Begin to read the part `lane` of the stream, and skip its first `batches` batches of `batch` samples each.

        If `state` is None, the batches to skip are read and discarded; otherwise, `state` is loaded into the dataset or its
        iterator."""
        self.seeds[lane] = mix(self.epoch_seed, lane)
        if not batches:
            return
        if state is None:
            for number in range(batches):
                self.read(Task(number, number * (batch or 1), batch, lane))
        elif not isinstance(self.dataset, Stream) and hasattr(self.dataset, "load_state_dict"):
            self.dataset.load_state_dict(state)
        else:
            iterator: Any = self._open(lane)
            iterator.load_state_dict(state)
            self.iterators[lane] = iterator

    def _open(self, lane: int) -> Iterator[Any]:
        if isinstance(self.dataset, Stream):
            return self.dataset.iterate(lane, self.dataset.lanes, self.epoch_seed)
        return iter(self.dataset)

    def fetch(self, task: Task) -> Any:
        return self._collate(task, self.read(task))

    def read(self, task: Task) -> Any:
        """Return the samples of the batch that `task` describes, without collating them."""
        self.seed: int = self.seeds[task.lane]
        self._seed_batch(task)
        samples: list[Any] = []
        try:
            iterator = self.iterators.get(task.lane)
            if iterator is None:
                iterator = self.iterators[task.lane] = self._open(task.lane)
            if not self.batched:
                if self.reading is not None:
                    self.reading(task.number, 0)
                return next(iterator)
            for offset in range(task.indices):
                if offset and self.streams == "sample":
                    seed_streams(mix(self.seed, task.position + offset))
                if self.reading is not None:
                    self.reading(task.number, offset)
                try:
                    samples.append(next(iterator))
                except StopIteration:
                    break
        except StopIteration:
            raise
        except BaseException:
            self.doing: str = (
                f"reading sample {task.position + len(samples)} of the stream (batch {task.number})"
            )
            self.index: Any = (task.position + len(samples),)
            raise
        if not samples or (self.drop_last and len(samples) < task.indices):
            raise StopIteration
        return samples

    def state(self, lane: int) -> Any:
        """Return the `state_dict()` of the iterator over this lane, or else of the dataset, or None if neither has one."""
        part: Any
        for part in (self.iterators.get(lane), self.dataset):
            if hasattr(part, "state_dict"):
                return part.state_dict()
        return None


class Abandoned(BaseException):
    """Raised between samples when the loader has cancelled the batch."""


def _convert_stop_iteration(error: BaseException) -> None:
    """Raise RuntimeError in place of StopIteration, which would end the loop over the loader without an error."""
    if isinstance(error, StopIteration):
        raise RuntimeError("the dataset or the collate_fn raised StopIteration") from error
