"""Where a loader is: what is needed to go on from there in another process."""

from __future__ import annotations

from typing import Any

import rushlight_core as core

VERSION = 1


class Progress:
    """One epoch: its number, the seed of its random streams, the sampler's state, and how much has been
    taken."""

    def __init__(self, epoch: int, seed: int, order: Any, batches: int = 0, samples: int = 0) -> None:
        self.epoch = epoch
        self.seed = seed
        self.order = order
        self.batches = batches
        self.samples = samples
        self.finished = False
        # Of an iterable dataset, per worker: batches taken, and the stream's state after them (None: cannot
        # tell).
        self.streams: list[tuple[int, Any]] = []
        self.turn = 0  # whose turn it is to give the next batch

    def state_dict(self) -> dict[str, Any]:
        """The epoch as plain Python objects."""
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


def check(state: Any, iterable: bool, num_workers: int) -> dict[str, Any]:
    """Refuse a state that this loader cannot go on from. Raises ValueError."""
    if not isinstance(state, dict) or "version" not in state or "epoch" not in state:
        raise ValueError("DataLoader.load_state_dict(state_dict): this is not the state of a DataLoader")
    if state["version"] != VERSION:
        raise ValueError(
            f"DataLoader.load_state_dict(state_dict): its version is {state['version']}, not {VERSION}"
        )
    streams = state.get("streams") or []
    if state["batches"] and iterable and len(streams) != max(num_workers, 1):
        raise ValueError(
            f"DataLoader.load_state_dict(state_dict): the state was saved with {len(streams)} workers, this "
            f"loader has {num_workers}\n"
            "Each worker reads its own share of an iterable dataset: resume with as many."
        )
    if state["batches"] and bool(streams) != iterable:
        raise ValueError(
            "DataLoader.load_state_dict(state_dict): the state is of a loader of the other style of dataset"
        )
    return state


def generator_state(generator: Any) -> Any:
    """A generator's state as a list of bytes."""
    return None if generator is None else generator.get_state().tolist()


def load_generator_state(generator: Any, state: Any) -> None:
    """Set a generator's state."""
    if generator is not None and state is not None:
        generator.set_state(core.tensor(state, dtype=core.uint8))
