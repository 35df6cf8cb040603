"""Streams of samples whose order does not depend on the number of workers, and that can be resumed at the exact sample.

Note [Lanes]
A stream is divided into a fixed number of parts, which are called lanes. Each lane has a part of the shards
and its own position. A loader takes one batch from each lane in turn, and all samples of a batch come from
one lane. A worker reads the lanes with `lane % num_workers == worker`, so the number of workers determines
which worker reads a lane, but not the samples of the lane. A loader's state has one entry per lane, so a
loader with another number of workers can continue from this state. The last batch of each lane may be smaller
than the others; with `drop_last`, such a batch is dropped.
"""

from __future__ import annotations

import bisect
import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar

from .dataset import IterableDataset
from .random_streams import mix, new_seed, permutation
from .sampler import _require_bool, _require_positive

__all__ = ["MixStream", "ShardStream", "ShuffleStream", "Stream", "StreamIterator"]

T = TypeVar("T")
_LANES = 8


class StreamIterator(Iterator[T]):
    """An iterator over one lane of a stream, with a position that can be saved and loaded.

    Example:
        >>> iterator = ShardStream(["ab"], read=iter, shuffle=False).iterate(0, 1, seed=0)
        >>> next(iterator), isinstance(iterator, StreamIterator)
        ('a', True)
    """

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return the position as plain Python objects."""

    @abstractmethod
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a position that an iterator of the same stream, lane and seed has returned."""


class Stream(IterableDataset[T]):
    """Base class of iterable datasets whose order is the same for any number of workers. See Note [Lanes].

    Subclasses define `lanes`, the number of parts that can be read independently, and `iterate`.

    Raises NotImplementedError if a subclass does not define `iterate`.

    Example:
        >>> isinstance(ShardStream(["ab"], read=iter), Stream)
        True
    """

    lanes: int

    def iterate(self, lane: int, lanes: int, seed: int) -> StreamIterator[T]:
        """Return an iterator over the samples of one of `lanes` lanes, in an order that `seed` determines.

        `lane` is the number of the lane, from 0 to `lanes - 1`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define iterate(lane, lanes, seed)")

    def __iter__(self) -> Iterator[T]:
        """Iterate over all samples, one from each lane in turn. A seed from core's generator determines the order."""
        seed = new_seed()
        iterators: list[Iterator[T]] = [self.iterate(lane, self.lanes, seed) for lane in range(self.lanes)]
        while iterators:
            for iterator in list(iterators):
                try:
                    yield next(iterator)
                except StopIteration:
                    iterators.remove(iterator)


class ShardStream(Stream[T]):
    """A stream of the samples in shards, such as files.

    Arguments:
        shards: a sequence of shards, such as paths.
        read: a function that returns an iterable over the samples of a shard. It must be picklable if worker
            processes are started with the method "spawn" or "forkserver".
        shuffle: whether to read the shards in a new random order in each epoch.
        lanes: number of parts that can be read independently. If there are more workers than lanes, the
            additional workers read nothing. Default: 8, or the number of shards if there are fewer.

    A resumed loader reads the current shard of each lane again, and skips the samples before the saved
    position. If `read` draws random numbers from the global generators, the resumed loader draws other
    numbers than an uninterrupted one. To get the same numbers, draw them in `collate_fn`, or from a generator
    that `read` seeds for each shard. After an exception, the iteration continues with the next shard of the
    lane.

    Raises ValueError if there are no shards or more lanes than shards.

    Example:
        >>> stream = ShardStream(["ab", "cd", "e"], read=iter, lanes=1)
        >>> list(stream)
        ['a', 'b', 'c', 'd', 'e']
    """

    def __init__(
        self,
        shards: Sequence[Any],
        read: Callable[[Any], Iterable[T]],
        *,
        shuffle: bool = False,
        lanes: int | None = None,
    ) -> None:
        if not len(shards):
            raise ValueError("ShardStream(shards): must have at least one shard")
        _require_bool("ShardStream", "shuffle", shuffle)
        lanes = min(_LANES, len(shards)) if lanes is None else lanes
        _require_positive("ShardStream", "lanes", lanes)
        if lanes > len(shards):
            raise ValueError(
                f"ShardStream(lanes): must be at most the number of shards, {len(shards)}, got {lanes}"
            )
        self.shards = shards
        self.read = read
        self.shuffle = shuffle
        self.lanes = lanes

    def iterate(self, lane: int, lanes: int, seed: int) -> StreamIterator[T]:
        order = list(permutation(len(self.shards), seed) if self.shuffle else range(len(self.shards)))
        return _ShardIterator(self, order[lane::lanes])


class _ShardIterator(StreamIterator[T]):
    def __init__(self, stream: ShardStream[T], order: list[int]) -> None:
        self._stream = stream
        self._order = order
        self._shard = self._sample = 0
        self._samples: Iterator[T] | None = None

    def __next__(self) -> T:
        while self._shard < len(self._order):
            try:
                if self._samples is None:
                    samples = self._stream.read(self._stream.shards[self._order[self._shard]])
                    self._samples = itertools.islice(iter(samples), self._sample, None)
                sample = next(self._samples)
            except StopIteration:
                self._end_shard()
                continue
            except Exception:
                self._end_shard()
                raise
            self._sample += 1
            return sample
        raise StopIteration

    def _end_shard(self) -> None:
        self._shard, self._sample, self._samples = self._shard + 1, 0, None

    def state_dict(self) -> dict[str, Any]:
        return {"shard": self._shard, "sample": self._sample}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._shard, self._sample, self._samples = state_dict["shard"], state_dict["sample"], None


class ShuffleStream(Stream[T]):
    """A stream that shuffles blocks of consecutive samples of another stream.

    Each lane reads `buffer_size` samples, returns them in random order, and then reads the next `buffer_size`
    samples. The state of a loader contains no samples, so a resumed loader reads one block per lane again. If `stream`
    raises an exception, the next call continues with the next sample of `stream`, and no other sample of the block is lost.

    Arguments:
        stream: the stream to shuffle.
        buffer_size: number of samples in a block.

    Raises TypeError if `stream` is not a `Stream`, and ValueError if `buffer_size` is not a positive int.

    Example:
        >>> stream = ShuffleStream(ShardStream(["abcd"], read=iter), buffer_size=4)
        >>> sorted(stream)
        ['a', 'b', 'c', 'd']
    """

    def __init__(self, stream: Stream[T], buffer_size: int) -> None:
        _require_stream("ShuffleStream(stream)", stream)
        _require_positive("ShuffleStream", "buffer_size", buffer_size)
        self.stream = stream
        self.buffer_size = buffer_size
        self.lanes: int = stream.lanes

    def iterate(self, lane: int, lanes: int, seed: int) -> StreamIterator[T]:
        return _ShuffleIterator(self.stream.iterate(lane, lanes, seed), self.buffer_size, mix(seed, lane))


class _ShuffleIterator(StreamIterator[T]):
    def __init__(self, source: StreamIterator[T], size: int, seed: int) -> None:
        self._source = source
        self._size = size
        self._seed = seed
        self._number = self._taken = 0
        self._begin = source.state_dict()  # position of the source at the beginning of the block
        self._errors = 0  # number of exceptions of the source that were raised while the block was read
        self._to_ignore = 0  # exceptions from before the state was saved, which are raised again and ignored
        self._samples: list[T] = []  # the samples of the block in the source's order, while it is read
        self._block: list[T] | None = None  # the remaining samples of the block, the next one last

    def __next__(self) -> T:
        if self._block is None:
            self._block = self._read_block()
        if not self._block:
            # An empty block is the end of the stream. The position remains after the last sample.
            if self._taken < self._size:
                raise StopIteration
            self._number, self._taken, self._errors, self._block = self._number + 1, 0, 0, None
            self._begin = self._source.state_dict()
            self._block = self._read_block()
            if not self._block:
                raise StopIteration
        self._taken += 1
        return self._block.pop()

    def _read_block(self) -> list[T]:
        """Read and shuffle a block. Return its samples in reverse order, without the first `_taken` ones.

        If the source raises an exception, the next call continues with the next sample of the source.
        """
        while len(self._samples) < self._size:
            try:
                self._samples.append(next(self._source))
            except StopIteration:
                break
            except Exception:
                if self._to_ignore:
                    self._to_ignore -= 1
                    continue
                self._errors += 1
                raise
        samples, self._samples = self._samples, []
        order = list(permutation(len(samples), mix(self._seed, self._number) >> 1))
        return [samples[i] for i in reversed(order[self._taken :])]

    def state_dict(self) -> dict[str, Any]:
        return {"source": self._begin, "block": self._number, "taken": self._taken, "errors": self._errors}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._begin = state_dict["source"]
        self._source.load_state_dict(self._begin)
        self._number, self._taken, self._block = state_dict["block"], state_dict["taken"], None
        self._errors = self._to_ignore = state_dict["errors"]
        self._samples = []


class MixStream(Stream[T]):
    """A stream that draws each sample from one of several streams, chosen at random.

    Arguments:
        streams: the streams.
        weights: a positive number per stream; a stream is chosen with a probability proportional to its weight.
        stop: "all" ends a lane after all streams have ended in this lane; "first" ends a lane as soon as one
            stream has ended in this lane.

    The number of lanes is the smallest number of lanes among `streams`.

    Raises TypeError if an item of `streams` is not a `Stream`, and ValueError if there are no streams, or if `weights` or
    `stop` is not valid.

    Example:
        >>> letters, digits = ShardStream(["abc"], read=iter), ShardStream(["123"], read=iter)
        >>> sorted(MixStream([letters, digits], weights=[3, 1]))
        ['1', '2', '3', 'a', 'b', 'c']
    """

    def __init__(
        self, streams: Sequence[Stream[T]], weights: Sequence[float], *, stop: Literal["all", "first"] = "all"
    ) -> None:
        if not streams:
            raise ValueError("MixStream(streams): must have at least one stream")
        for i, stream in enumerate(streams):
            _require_stream(f"MixStream(streams): item {i}", stream)
        if len(weights) != len(streams) or not all(0 < weight < float("inf") for weight in weights):
            raise ValueError(
                f"MixStream(weights): must be one positive number per stream, got {list(weights)} for "
                f"{len(streams)} streams"
            )
        if stop not in ("all", "first"):
            raise ValueError(f"MixStream(stop): must be 'all' or 'first', got {stop!r}")
        self.streams: list[Stream[T]] = list(streams)
        self.weights: list[float] = [float(weight) for weight in weights]
        self.stop = stop
        self.lanes: int = min(stream.lanes for stream in streams)

    def iterate(self, lane: int, lanes: int, seed: int) -> StreamIterator[T]:
        sources = [
            stream.iterate(lane, lanes, mix(seed, i, -4) >> 1) for i, stream in enumerate(self.streams)
        ]
        return _MixIterator(self, sources, mix(seed, lane, -5))


class _MixIterator(StreamIterator[T]):
    def __init__(self, stream: MixStream[T], sources: list[StreamIterator[T]], seed: int) -> None:
        self._stream = stream
        self._sources = sources
        self._seed = seed
        self._draws = 0
        self._ended = [False] * len(sources)

    def __next__(self) -> T:
        while not (all if self._stream.stop == "all" else any)(self._ended):
            which = self._draw()
            try:
                return next(self._sources[which])
            except StopIteration:
                self._ended[which] = True
        raise StopIteration

    def _draw(self) -> int:
        left = [i for i, ended in enumerate(self._ended) if not ended]
        ends = list(itertools.accumulate(self._stream.weights[i] for i in left))
        value = (mix(self._seed, self._draws) >> 11) / (1 << 53) * ends[-1]
        self._draws += 1
        return left[min(bisect.bisect_right(ends, value), len(left) - 1)]

    def state_dict(self) -> dict[str, Any]:
        return {
            "draws": self._draws,
            "ended": list(self._ended),
            "sources": [source.state_dict() for source in self._sources],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._draws, self._ended = state_dict["draws"], list(state_dict["ended"])
        for source, state in zip(self._sources, state_dict["sources"], strict=True):
            source.load_state_dict(state)


def _require_stream(what: str, stream: object) -> None:
    if not isinstance(stream, Stream):
        raise TypeError(f"{what}: must be a Stream, got {type(stream).__name__}")
