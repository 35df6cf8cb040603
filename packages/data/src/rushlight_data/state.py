"""The state of a loader, from which iteration can be resumed in another process."""

from __future__ import annotations

from typing import Any

import rushlight_core as core

VERSION = 1


class Progress:
    """The progress of one epoch.

    It consists of the epoch's number, the seed of its random streams, the sampler's state, and the number of
    batches and samples returned so far."""

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
        }


def check(state: Any, iterable: bool, lanes: int, num_workers: int) -> dict[str, Any]:
    """Return the state if this loader can resume from it. Raises ValueError otherwise."""
    if not isinstance(state, dict) or "version" not in state or "epoch" not in state:
        raise ValueError("DataLoader.load_state_dict(state_dict): this is not the state of a DataLoader")
    if state["version"] != VERSION:
        raise ValueError(
            f"DataLoader.load_state_dict(state_dict): unsupported version {state['version']}, need {VERSION}"
        )
    streams = state.get("streams") or []
    if state["batches"] and iterable and len(streams) != lanes:
        if lanes != max(num_workers, 1):
            raise ValueError(
                f"DataLoader.load_state_dict(state_dict): the state is of a stream with {len(streams)} lanes, but "
                f"this stream has {lanes}"
            )
        raise ValueError(
            f"DataLoader.load_state_dict(state_dict): the state was saved with {len(streams)} workers, but "
            f"this loader has {num_workers}\n"
            "Each worker reads its own part of an iterable dataset: resume with the same number of workers, or use a "
            "Stream."
        )
    if state["batches"] and bool(streams) != iterable:
        raise ValueError(
            "DataLoader.load_state_dict(state_dict): the state is from a loader with "
            f"{'a map-style' if iterable else 'an iterable-style'} dataset"
        )
    return state


def generator_state(generator: Any) -> Any:
    """Return a generator's state as a list of bytes."""
    return None if generator is None else generator.get_state().tolist()


def load_generator_state(generator: Any, state: Any) -> None:
    """Set a generator's state."""
    if generator is not None and state is not None:
        generator.set_state(core.tensor(state, dtype=core.uint8))
