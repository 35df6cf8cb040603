"""Batches of a `DataLoader` in pinned memory, on the toy device.

The tests read the output of this file, which runs in a separate process, because a device stays attached to its
process.
"""

from __future__ import annotations

import collections
import json
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader, Dataset, IterableDataset
from rushlight_core import devices

Pair = collections.namedtuple("Pair", "x y")


class Own:
    """A batch of a user-defined class with a method `pin_memory`."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x = x

    def pin_memory(self) -> Own:
        return Own(self.x.pin_memory())


class Samples(Dataset):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, i: int) -> Any:
        if i >= 10:
            raise IndexError
        return {"pair": Pair(torch.full((600,), float(i)), i), "list": [torch.tensor(i)], "text": f"{i}"}


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(Samples()[i] for i in range(10))


class Watched:
    """A batch that notifies when a thread begins to pin it."""

    begun = threading.Condition()
    threads: list[int] = []  # that have pinned batches

    def pin_memory(self) -> Watched:
        with self.begun:
            self.threads.append(threading.get_ident())
            self.begun.notify_all()
        return self


class Counted(Dataset):
    """Samples that count how many of them have been read."""

    read = threading.Condition()
    count = 0

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> int:
        with self.read:
            type(self).count += 1
            self.read.notify_all()
        return i


def pinned_meanwhile() -> list[bool]:
    """Return whether batches are pinned in another thread, and while the caller uses an earlier batch."""
    loader = DataLoader(
        Counted(),
        1,
        num_workers=2,
        transport="threads",
        pin_memory=True,
        collate_fn=lambda samples: Watched(),
    )
    batches = iter(loader)
    next(batches)
    with Counted.read:  # wait until the workers have read the next batches
        Counted.read.wait_for(lambda: Counted.count >= 5, 20)
    next(batches)
    with Watched.begun:
        meanwhile = Watched.begun.wait_for(lambda: len(Watched.threads) >= 3, 20)
    list(batches)
    return [meanwhile, len(Watched.threads) == 8, threading.get_ident() in Watched.threads]


def own_batches(samples: list[Any]) -> Own:
    return Own(torch.stack([sample["pair"].x for sample in samples]))


LOADERS: dict[str, dict[str, Any]] = {
    "0 workers": {},
    "2 workers": {"num_workers": 2},
    "2 threads": {"num_workers": 2, "transport": "threads"},
    "a stream": {"num_workers": 1},
    "the device is named": {"pin_memory_device": "toy", "num_workers": 1},
}


def described(batch: Any) -> Any:
    """Return the values of a batch and whether its tensors are pinned. Copies do not wait for the device."""
    there = batch["pair"].x.to("toy", non_blocking=True)
    tensors = [batch["pair"].x, batch["pair"].y, batch["list"][0]]
    return [
        [t.is_pinned() for t in tensors],
        type(batch["pair"]).__name__,
        there.cpu()[:, 599].tolist(),
        batch["pair"].y.tolist(),
        batch["list"][0].tolist(),
        batch["text"],
    ]


def main() -> None:
    devices.load_backend(sys.argv[1])
    found: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for name, options in LOADERS.items():
            dataset = Stream() if name == "a stream" else Samples()
            loader = DataLoader(dataset, 4, pin_memory=True, **options)
            found[name] = [[described(batch) for batch in loader] for _ in range(2)]
        loader = DataLoader(Samples(), 4, pin_memory=True, num_workers=1, collate_fn=own_batches)
        found["own"] = [batch.x.is_pinned() for batch in loader]
        found["not asked for"] = [batch["pair"].x.is_pinned() for batch in DataLoader(Samples(), 4)]
        found["meanwhile"] = pinned_meanwhile()
        plain = torch.zeros(3)
        batches = list(DataLoader([plain], 1, pin_memory=True, collate_fn=lambda samples: samples[0]))
        found["original"] = [plain.is_pinned(), batches[0].is_pinned()]
        packed = torch.nn.utils.rnn.pack_sequence([plain[:1], plain[:2]], enforce_sorted=False)
        pinned = packed.pin_memory()
        parts = (pinned, pinned.sorted_indices, pinned.unsorted_indices, pinned.batch_sizes)
        found["packed"] = [packed.is_pinned(), *(part.is_pinned() for part in parts)]
        found["warnings"] = [str(warning.message) for warning in said]
    print(json.dumps(found))


@pytest.fixture(scope="module")
def seen(toy_device: Path) -> dict[str, Any]:
    """Return the output of `main`."""
    done = subprocess.run(
        [sys.executable, __file__, str(toy_device)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", LOADERS)
def test_all_tensors_of_batches_are_pinned(seen: dict[str, Any], name: str) -> None:
    parts = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    epoch = [
        [[True] * 3, "Pair", [float(i) for i in part], part, part, [str(i) for i in part]] for part in parts
    ]
    assert seen[name] == [epoch, epoch]


def test_batches_with_a_method_of_their_own(seen: dict[str, Any]) -> None:
    assert seen["own"] == [True] * 3


def test_another_thread_pins_while_the_caller_works(seen: dict[str, Any]) -> None:
    assert seen["meanwhile"] == [True, True, False]


def test_only_what_is_asked_for_is_pinned(seen: dict[str, Any]) -> None:
    assert seen["not asked for"] == [False] * 3
    assert seen["original"] == [False, True]
    assert seen["warnings"] == []


def test_packed_sequences(seen: dict[str, Any]) -> None:
    assert seen["packed"] == [False, True, True, True, False]


if __name__ == "__main__":
    main()
