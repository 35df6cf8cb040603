"""`DataLoader`, with PyTorch's interface.

Samples do not depend on the number of workers, iteration can be resumed exactly, and errors name the sample
that failed.
"""

from __future__ import annotations

import itertools
import math
import numbers
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Generic, Protocol, TypeVar, cast

from .collate import default_collate, default_convert
from .dataset import IterableDataset, _draws_random
from .fetch import Fetcher, IterableFetcher, MapFetcher, Streams
from .held_generators import warn_of_generators
from .interrupts import KeepInterrupts
from .iterators import LoaderIterator, SerialIterator, WorkersIterator
from .quiet import QuietStreams
from .random_streams import mix, new_seed
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, begins_anew, iterate
from .state import Progress, arguments, check, digest_of, generator_state, load_generator_state, sampler_of
from .stats import LoaderStats
from .streams import Stream
from .transport import find_transport
from .worker_pool import WorkerPool

__all__ = ["DataLoader"]

T_co = TypeVar("T_co", covariant=True)


class _Samples(Protocol[T_co]):
    """The methods that a map-style dataset must have."""

    def __getitem__(self, index: Any, /) -> T_co: ...


_FIXED = {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}


class DataLoader(Generic[T_co]):
    """An iterable over the batches of a dataset. Worker processes can load batches ahead of time.

    Arguments:
        dataset: a map-style dataset (`__getitem__`, `__len__`) or an `IterableDataset`.
        batch_size: number of samples per batch; None disables batching.
        shuffle: whether to read the samples in a new random order in each epoch.
        sampler: an iterable of indices that determines the order; cannot be combined with `shuffle`.
        batch_sampler: an iterable of lists of indices; cannot be combined with `batch_size`, `shuffle`, `sampler` and
            `drop_last`.
        num_workers: number of workers; 0 reads the batches in the calling process.
        collate_fn: a function that makes a batch from a list of samples. Default: `default_collate`, or
            `default_convert` without batching.
        pin_memory: whether to copy batches to page-locked memory, which allows copies to a GPU to be
            asynchronous.
        drop_last: whether to drop the last batch if it has fewer than `batch_size` samples.
        timeout: seconds to wait for a batch from the workers; 0 waits without limit.
        worker_init_fn: a function that each worker calls with its index when the worker starts.
        multiprocessing_context: a context or the name of a start method; None selects the default start method.
        generator: the generator from which seeds are drawn; None selects the default generator.
        prefetch_factor: number of batches read ahead per worker. Default: 2.
        persistent_workers: whether to keep the workers between epochs. True keeps the workers even if the loader cannot
            verify that the objects copied to them have not changed. False starts new workers for each epoch. None keeps the
            worker processes of a map-style dataset if `streams` is not None and the loader can verify that these objects
            have not changed, and otherwise starts new workers for each epoch.
        pin_memory_device: the device for which memory is pinned; "" selects the available device.
        in_order: whether to return batches in the sampler's order, rather than in the order in which the batches arrive.
        seed: an int, so that the order and all random streams depend only on (seed, epoch, batch). If None,
            the seed of each epoch is drawn from `generator`. Not in PyTorch.
        streams: how the random streams of `random`, NumPy and core are seeded while samples are read: "batch" seeds the
            streams before each batch. "sample" seeds the streams before each sample, so that values do not depend on the
            batch size; this takes about 10 microseconds per sample. None seeds the streams once per worker, as in PyTorch,
            so that values depend on the worker. See Note [Streams]. Not in PyTorch.
        transport: how batches are sent: "shared_memory", "pickling", "threads", a
            `rushlight_core.seams.transport.Transport`, or None for the fastest transport that is installed. Not in PyTorch.
        progress: whether to show a progress bar on the standard error stream. Not in PyTorch.
        report: whether to write a line at the end of each epoch. The line states whether the training loop
            waited for the workers or the workers waited for the loop, and suggests a remedy. Not in PyTorch.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: arguments cannot be combined, or an argument is out of range.

    An exception in the dataset is raised by `next()` with its own class. The notes of the exception name the sample. With
    workers, the `__cause__` of the exception is a `WorkerError`. Iteration can continue after the exception. If a worker
    exits, `next()` raises `WorkerExited` and the iteration ends. If no batch arrives within `timeout` seconds, `next()`
    raises `LoaderTimeout`.

    Example:
        >>> dataset = torch.utils.data.TensorDataset(torch.arange(10.0).reshape(5, 2), torch.arange(5))
        >>> loader = torch.utils.data.DataLoader(dataset, batch_size=2)
        >>> for x, y in loader:
        ...     print(tuple(x.shape), y.tolist())
        (2, 2) [0, 1]
        (2, 2) [2, 3]
        (1, 2) [4]
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    _iterator: LoaderIterator | None = None
    _made = False

    def __init__(
        self,
        dataset: _Samples[T_co] | Iterable[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool | None = None,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int | None = None,
        streams: Streams = "batch",
        transport: Any = None,
        progress: bool = False,
        report: bool = False,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        _check_streams(streams)
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("DataLoader(sampler, shuffle): sampler and shuffle are mutually exclusive")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "DataLoader(batch_sampler): mutually exclusive with batch_size, shuffle, sampler and "
                    "drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError(
                "DataLoader(drop_last): batch_size=None disables batching and is mutually exclusive with drop_last"
            )

        if sampler is None and not iterable:
            sized = cast(Sized, dataset)
            sampler = RandomSampler(sized, generator=generator) if shuffle else SequentialSampler(sized)
        if batch_sampler is None and batch_size is not None:
            if iterable:
                _check_batch_size(batch_size)
            else:
                batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]

        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor: int | None = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        batched = batch_sampler is not None or batch_size is not None
        if collate_fn is None:
            collate_fn = default_collate if batched else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers: bool = num_workers > 0 if persistent_workers is None else persistent_workers
        self._keeps_always = bool(persistent_workers)
        self.in_order = in_order
        self.seed: int | None = None if seed is None else _require_int("seed", seed)
        self.streams = streams
        self.transport = transport
        self.progress = progress
        self.report = report
        self._iterable = iterable
        self._batched = batched
        self._pool: WorkerPool | None = None
        self._pool_arguments: tuple[Any, ...] = ()
        self._progress: Progress | None = None
        self._resume: dict[str, Any] | None = None
        self._epoch = 0
        self._batch_bytes: int | None = None  # size of the largest batch that workers have read
        self._quiet = QuietStreams()
        self._warned = False  # whether the warning about generators in the dataset was given
        self._stats = LoaderStats(num_workers)
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._made and name in _FIXED:
            raise ValueError(
                f"DataLoader: {name} cannot be changed after the loader is created; create another loader"
            )
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to copy or pickle. Workers are not included: the copy starts its own workers."""
        return self.__dict__ | {"_pool": None, "_pool_arguments": ()}

    def __len__(self) -> int:
        """Return the number of batches per epoch. Raises TypeError if the dataset or sampler has no length."""
        if not self._iterable:
            return len(self.batch_sampler if self._batched else self.sampler)  # type: ignore[arg-type]
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> LoaderIterator:
        """Begin an epoch, or continue from the state that `load_state_dict` has loaded.

        With workers and `persistent_workers=True`, earlier iterators of this loader can no longer be used."""
        progress, order = self._begin_epoch()
        if self.num_workers == 0:
            return SerialIterator(self, progress, order, self._make_fetcher())
        with KeepInterrupts():
            pool = self._reusable_pool()
            if pool is None:
                pool = self._start_workers(progress.seed)
            return WorkersIterator(self, progress, order, pool)

    def _start_workers(self, seed: int) -> WorkerPool:
        transport = find_transport(self.transport)
        if self.num_workers > 1 and self.worker_init_fn is None and transport.isolated and not self._warned:
            self._warned = True
            warn_of_generators(self.dataset)
        pool = WorkerPool(
            self.num_workers,
            self._make_fetcher(),
            mix(seed, -1) >> 1,
            self.worker_init_fn,
            transport,
            self.multiprocessing_context,
        )
        if self.persistent_workers and self._pool is None:
            self._pool, self._pool_arguments = pool, self._worker_arguments()
        return pool

    def _reusable_pool(self) -> WorkerPool | None:
        """Return the pool of the previous epoch, or None if this epoch needs new workers."""
        pool = self._pool
        if pool is None:
            return None
        if pool.is_own and not pool.stopped:
            if pool.iterator() is not None and not self._keeps_always:
                return None  # another iterator of this loader still uses the workers
            arguments = self._worker_arguments()
            same = all(a is b for a, b in zip(arguments, self._pool_arguments, strict=True))
            if same and self._keeps(pool) and pool.is_current():
                return pool
            pool.stop()
        self._pool = None
        return None

    def _keeps(self, pool: WorkerPool) -> bool:
        """Return whether the next epoch may reuse the workers of `pool`, if the arguments stay the same."""
        if pool is not self._pool:
            return False
        # With streams=None, the random streams of workers are seeded when a worker starts, so each epoch needs new workers.
        return self._keeps_always or (pool.is_known and self.streams is not None)

    def _worker_arguments(self) -> tuple[Any, ...]:
        return (
            self.num_workers, self.collate_fn, self.worker_init_fn, self.transport, self.multiprocessing_context,
            self.streams,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the latest iteration as a small dict of plain Python objects.

        If a loader with the same arguments loads the state, it continues with the next batch. The loader does
        not read the earlier batches again, unless the dataset is an iterable dataset without `state_dict`."""
        if self._resume is not None:  # a state was loaded, and its epoch has not begun
            return dict(self._resume)
        if not self.in_order and self._progress is not None and not self._progress.finished:
            raise ValueError(
                "DataLoader.state_dict(): with in_order=False, an epoch cannot be saved before its end\n"
                "hint: save between epochs, or create the loader with in_order=True."
            )
        state = (
            self._progress.state_dict()
            if self._progress is not None
            else {"version": 1, "epoch": 0, "batches": 0}
        )
        if "seed" in state:  # in the middle of an epoch
            state.update(arguments(self))
        state["generator"] = generator_state(self.generator)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from which the next iteration continues.

        Raises ValueError if the state does not fit this loader, for example because the batch size or the dataset differs.
        If a sampler without `state_dict` returns a different order than when the state was saved, the next iteration raises
        ValueError.
        """
        state = check(state_dict, self)
        load_generator_state(self.generator, state.get("generator"))
        self._resume = dict(state)

    def stats(self) -> LoaderStats:
        """Return how long the training loop waited for the workers, and how long the workers waited for the loop.

        `stats().verdict` summarises the waiting times in one sentence."""
        return self._stats

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors."""
        cores = len(os.sched_getaffinity(0))
        if self.num_workers > cores:
            warnings.warn(
                f"DataLoader(num_workers): got {self.num_workers}, but there are only {cores} processors",
                stacklevel=2,
            )

    def _begin_epoch(self) -> tuple[Progress, Iterator[Any] | None]:
        resume = self._resume
        sampler: Any = self.batch_sampler if self._batched else self.sampler
        if resume is None:
            epoch, batches, samples, order_state = self._epoch, 0, 0, None
        else:
            epoch, batches = resume["epoch"], resume["batches"]
            samples, order_state = resume.get("samples", 0), resume.get("order")
        if resume is not None and "seed" in resume:  # the state is from the middle of an epoch
            seed = resume["seed"]
        elif self.seed is not None:
            seed = mix(self.seed, epoch) >> 1
        else:
            seed = new_seed(self.generator)
        order = None
        if not self._iterable:
            if order_state is not None and hasattr(sampler, "load_state_dict"):
                sampler.load_state_dict(order_state)
            elif self.seed is not None and hasattr(sampler, "reseed"):
                sampler.reseed(mix(seed, -2) >> 1)
            digest: int | None = 0 if begins_anew(sampler) else None
            if digest is not None and resume is not None and resume.get("digest") is not None:
                digest = resume["digest"]
                order = self._skip(iter(sampler), batches, digest)
            else:
                order = iterate(sampler, batches)
            order_state = sampler.state_dict() if hasattr(sampler, "state_dict") else None
        progress = Progress(epoch, seed, order_state, batches, samples)
        if not self._iterable:
            progress.digest = digest
        else:
            streams = (resume or {}).get("streams")
            progress.streams = [(n, s) for n, s in streams] if streams else [(0, None)] * self._lanes()
            progress.turn = (resume or {}).get("turn", 0)
        self._progress, self._resume = progress, None
        self._epoch = epoch + 1
        return progress, order

    def _skip(self, order: Iterator[Any], batches: int, expected: int) -> Iterator[Any]:
        """Skip the first `batches` batches of `order`.

        Raise ValueError if the digest of the skipped indices is not `expected`.
        """
        digest: int | None = 0
        for indices in itertools.islice(order, batches):
            digest = digest_of(list(indices) if self._batched else indices, digest)
        if digest != expected:
            raise ValueError(
                f"DataLoader.load_state_dict(state_dict): {type(sampler_of(self)).__name__} does not return the same "
                "indices as when the state was saved\n"
                "hint: define state_dict and load_state_dict in a sampler with a random order, as described in Sampler."
            )
        return order

    def _lanes(self) -> int:
        """Return the number of lanes (independent parts) of an iterable dataset. See Note [Lanes]."""
        return self.dataset.lanes if isinstance(self.dataset, Stream) else max(self.num_workers, 1)

    def _make_fetcher(self) -> Fetcher:
        streams = self.streams
        default = self.collate_fn in (default_collate, default_convert)
        if default and not _draws_random(self.dataset):
            streams = None
        if self._iterable:
            return IterableFetcher(self.dataset, self._batched, self.collate_fn, streams, self.drop_last)
        return MapFetcher(
            self.dataset, self._batched, self.collate_fn, streams, fast=self.collate_fn is default_collate
        )


def _check_workers(
    num_workers: int,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool | None,
    context: Any,
) -> None:
    _require_int("num_workers", num_workers)
    if num_workers < 0:
        raise ValueError(
            f"DataLoader(num_workers): must be non-negative, got {num_workers}; use 0 to read without workers"
        )
    if not isinstance(timeout, numbers.Real):
        raise TypeError(f"DataLoader(timeout): must be a number of seconds, got {timeout!r}")
    if not 0 <= timeout < math.inf:
        raise ValueError(
            f"DataLoader(timeout): must be non-negative and finite, got {timeout}; 0 means no limit"
        )
    if num_workers == 0:
        for name, given in (
            ("prefetch_factor", prefetch_factor is not None),
            ("persistent_workers", bool(persistent_workers)),
            ("multiprocessing_context", context is not None),
        ):
            if given:
                raise ValueError(f"DataLoader({name}): requires num_workers > 0")
    if context is not None:
        _check_context(context)
    if prefetch_factor is not None:
        _require_int("prefetch_factor", prefetch_factor)
        if prefetch_factor <= 0:
            raise ValueError(f"DataLoader(prefetch_factor): must be positive, got {prefetch_factor}")


def _require_int(name: str, value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"DataLoader({name}): must be an int, got {value!r}") from None


def _check_context(context: Any) -> None:
    if isinstance(context, str):
        from multiprocessing import get_all_start_methods  # takes 10 ms, and only workers need it

        methods = get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"DataLoader(multiprocessing_context): must be one of {', '.join(methods)}, got {context!r}"
            )
    elif not callable(getattr(context, "Process", None)):
        raise TypeError(
            "DataLoader(multiprocessing_context): must be the name of a start method or a context, got "
            f"{type(context).__name__}"
        )


def _check_streams(streams: object) -> None:
    if streams not in ("batch", "sample", None):
        raise ValueError(f"DataLoader(streams): must be 'batch', 'sample' or None, got {streams!r}")


def _check_iterable(shuffle: object, sampler: object, batch_sampler: object) -> None:
    for name, given in (
        ("shuffle", shuffle not in (None, False)),
        ("sampler", sampler is not None),
        ("batch_sampler", batch_sampler is not None),
    ):
        if given:
            raise ValueError(
                f"DataLoader({name}): is not supported for an IterableDataset, which determines its own order"
            )


def _check_batch_size(batch_size: object) -> None:
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
        raise ValueError(f"DataLoader(batch_size): must be a positive int or None, got {batch_size!r}")
