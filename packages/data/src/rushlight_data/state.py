"""The state of a loader, from which iteration can be resumed in another process."""

from __future__ import annotations

import marshal
import zlib
from typing import TYPE_CHECKING, Any

import rushlight_core as core

from .sampler import BatchSampler, RandomSampler, SequentialSampler

if TYPE_CHECKING:
    from .loader import DataLoader

VERSION = 1


class Progress:
    """The progress of one epoch.

    The progress consists of the epoch's number, the seed of the epoch's random streams, the sampler's state, and the numbers
    of batches and samples that were returned so far."""

    def __init__(self, epoch: int, seed: int, order: Any, batches: int = 0, samples: int = 0) -> None:
        self.epoch = epoch
        self.seed = seed
        self.order = order
        self.batches = batches
        self.samples = samples
        self.finished = False
        # For an iterable dataset, per lane: the number of batches returned, and the stream's state after
        # them (None if the dataset has no state_dict).
        self.streams: list[tuple[int, Any]] = []
        self.turn = 0  # the lane of the next batch
        # The digest of the indices so far, if a resumed sampler is iterated from its beginning; otherwise None.
        self.digest: int | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return the progress as plain Python objects."""
        if self.finished:
            return {"version": VERSION, "epoch": self.epoch + 1, "batches": 0}
        return {
            "version": VERSION,
            "epoch": self.epoch,
            "batches": self.batches,
            "samples": self.samples,
            "seed": self.seed,
            "order": self.order,
            "streams": [list(stream) for stream in self.streams],
            "turn": self.turn,
            "digest": self.digest,
        }


def arguments(loader: DataLoader[Any]) -> dict[str, Any]:
    """Return the settings of a loader that determine which samples come after a given position."""
    if loader._iterable:
        return {"batch_size": loader.batch_size}
    batches: Any = loader.batch_sampler
    return {
        "batch_size": batches.batch_size if type(batches) is BatchSampler else loader.batch_size,
        "sampler": type(sampler_of(loader)).__name__,
        "dataset_length": _length(loader.dataset),
    }


def sampler_of(loader: DataLoader[Any]) -> Any:
    """Return the sampler that determines the order of a loader's samples. A BatchSampler is unwrapped."""
    sampler: Any = loader.batch_sampler if loader._batched else loader.sampler
    return sampler.sampler if type(sampler) is BatchSampler else sampler


def check(state: Any, loader: DataLoader[Any]) -> dict[str, Any]:
    """Return `state` if `loader` can resume from it. Otherwise, raise ValueError."""
    if not isinstance(state, dict) or "version" not in state or "epoch" not in state:
        raise _error("this is not the state of a DataLoader")
    if state["version"] != VERSION:
        raise _error(f"unsupported version {state['version']}, need {VERSION}")
    _check_form(state)
    if state["batches"]:
        _check_streams(state, loader)
    if "seed" in state:  # the state is from the middle of an epoch
        _check_arguments(state, loader)
    return state


def _error(message: str) -> ValueError:
    return ValueError(f"DataLoader.load_state_dict(state_dict): {message}")


def _check_form(state: dict[str, Any]) -> None:
    numbers = ["epoch", "batches"]
    if state.get("batches"):
        numbers += ("samples", "seed")
    for name in numbers:
        if name not in state:
            raise _error(f"the state must have an entry {name!r}, got {', '.join(state)}")
    for name in ("epoch", "batches", "samples", "seed", "turn"):
        value = state.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise _error(f"{name!r} must be a non-negative int, got {value!r}")
    streams = state.get("streams") or []
    if not isinstance(streams, list) or not all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in streams
    ):
        raise _error(f"'streams' must be a list of pairs, got {streams!r}")


def _check_streams(state: dict[str, Any], loader: DataLoader[Any]) -> None:
    streams, iterable, lanes = state.get("streams") or [], loader._iterable, loader._lanes()
    if iterable and len(streams) != lanes:
        if lanes != max(loader.num_workers, 1):
            raise _error(
                f"the state was saved for a stream with {len(streams)} lanes, but this stream has {lanes}"
            )
        raise _error(
            f"the state was saved with {len(streams)} workers, but this loader has {loader.num_workers}\n"
            "Each worker reads its own part of an iterable dataset: resume with the same number of workers, or use a "
            "Stream."
        )
    if bool(streams) != iterable:
        raise _error(
            f"the state was saved for {'a map-style' if iterable else 'an iterable-style'} dataset, but the dataset of this "
            f"loader is {'iterable-style' if iterable else 'map-style'}"
        )


def _check_arguments(state: dict[str, Any], loader: DataLoader[Any]) -> None:
    # An iterable dataset that has saved its own position continues from there with any batch size.
    if loader._iterable and not any(batches and own is None for batches, own in state.get("streams") or []):
        return
    for name, present in arguments(loader).items():
        saved = state.get(name, present)
        if saved != present:
            raise _error(
                f"the state was saved with {name}={saved!r}, but this loader has {name}={present!r}\n"
                "hint: create the loader with the arguments of the loader that saved the state."
            )
    if type(sampler_of(loader)) in (RandomSampler, SequentialSampler) and state["batches"] > len(loader):
        raise _error(
            f"the state was saved after {state['batches']} batches, but an epoch of this loader has only {len(loader)}"
        )


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def digest_of(indices: Any, previous: int | None) -> int | None:
    """Return a digest of the indices of all batches so far, or None if `marshal` does not support an index.

    `previous` is the digest of the earlier batches. If `previous` is None, return None."""
    if previous is None:
        return None
    try:
        # In marshal's version 0, equal values have equal bytes.
        return zlib.crc32(marshal.dumps(indices, 0), previous)
    except ValueError:  # marshal does not support the class of an index
        return None


def generator_state(generator: Any) -> Any:
    """Return a generator's state as a list of bytes."""
    return None if generator is None else generator.get_state().tolist()


def load_generator_state(generator: Any, state: Any) -> None:
    """Set a generator's state."""
    if generator is not None and state is not None:
        generator.set_state(core.tensor(state, dtype=core.uint8))
