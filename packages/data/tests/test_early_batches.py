"""Each way in which state changes between epochs drops the batches that workers have read early."""

from __future__ import annotations

import functools
import os

import pytest

import rushlight_core as core
from rushlight_data import (
    BatchSampler,
    BucketBatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    default_collate,
)

N = 12
EARLY = 8  # two workers read two batches of two samples each
OFFSET = 0


class Scale:
    factor = 1


class Slotted:
    __slots__ = ("bias",)

    def __init__(self):
        self.bias = 0


class Rows(Dataset):
    """A dataset that writes one byte to a pipe for each read."""

    shift = 0

    def __init__(self, pipe=None):
        self.pipe = pipe
        self.scale = Scale()
        self.slotted = Slotted()
        self.values = list(range(N))
        self.table = {"a": [0] * N}
        self.weights = core.zeros(N)
        self.bytes = bytearray(N)
        self.transform = functools.partial(add, amount=0)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        if self.pipe is not None:
            os.write(self.pipe, b"r")
        value = self.values[i] * self.scale.factor + self.slotted.bias + self.table["a"][i] + self.bytes[i]
        return float(self.transform(value + self.shift + OFFSET) + self.weights[i])


def add(value, amount):
    return value + amount


class Collate:
    power = 1

    def __init__(self):
        self.shift = core.zeros(())

    def __call__(self, samples):
        return default_collate(samples) ** self.power + self.shift


def closure():
    amount = 0

    def collate(samples):
        return default_collate(samples) + amount

    def change(value):
        nonlocal amount
        amount = value

    collate.change = change
    return collate


def by_default(samples, amount=[0]):  # noqa: B006
    return default_collate(samples) + amount[0]


def generator():
    return core.Generator().manual_seed(7)


# The options of a loader, and a change between two epochs.
CHANGES = {
    "an attribute of the dataset": ({}, lambda loader: setattr(loader.dataset, "shift", 5)),
    "an object that the dataset holds": ({}, lambda loader: setattr(loader.dataset.scale, "factor", 3)),
    "a slot of such an object": ({}, lambda loader: setattr(loader.dataset.slotted, "bias", 1)),
    "an item of a list": ({}, lambda loader: loader.dataset.values.__setitem__(1, 100)),
    "an item of a nested container": ({}, lambda loader: loader.dataset.table["a"].__setitem__(2, 9)),
    "an element of a tensor": ({}, lambda loader: loader.dataset.weights.__setitem__(0, 0.5)),
    "a byte": ({}, lambda loader: loader.dataset.bytes.__setitem__(3, 7)),
    "an argument of a transform": ({}, lambda loader: loader.dataset.transform.keywords.update(amount=2)),
    "a transform": ({}, lambda loader: setattr(loader.dataset, "transform", abs_of_minus)),
    "the length": ({}, lambda loader: loader.dataset.values.__setitem__(slice(None), [4, 5, 6] * 3)),
    "collate_fn": ({}, lambda loader: setattr(loader, "collate_fn", negated)),
    "an attribute of collate_fn": ({}, lambda loader: setattr(loader.collate_fn, "power", 2)),
    "a tensor of collate_fn": ({}, lambda loader: loader.collate_fn.shift.fill_(1)),
    "a variable of collate_fn": ({"collate_fn": closure}, lambda loader: loader.collate_fn.change(4)),
    "a default of collate_fn": (
        {"collate_fn": lambda: by_default},
        lambda loader: loader.collate_fn.__defaults__[0].__setitem__(0, 3),
    ),
    "set_epoch": (
        {"sampler": lambda: DistributedSampler(range(N), num_replicas=1, rank=0)},
        lambda loader: loader.sampler.set_epoch(1),
    ),
    "the indices of a sampler": (
        {"sampler": lambda: SubsetRandomSampler([*range(N)], generator=generator())},
        lambda loader: loader.sampler.indices.reverse(),
    ),
    "the weights of a sampler": (
        {"sampler": lambda: WeightedRandomSampler([1.0] * N, N, generator=generator())},
        lambda loader: loader.sampler.weights[:6].fill_(0.0),
    ),
    "whether a sampler replaces": (
        {"sampler": lambda: RandomSampler(range(N), generator=generator())},
        lambda loader: setattr(loader.sampler, "replacement", True),
    ),
    "the generator of a sampler": (
        {"sampler": lambda: RandomSampler(range(N), generator=generator())},
        lambda loader: loader.sampler.generator.manual_seed(8),
    ),
    "the batch size of a batch sampler": (
        {"batch_sampler": lambda: BatchSampler(range(N), 2, False)},
        lambda loader: setattr(loader.batch_sampler, "batch_size", 3),
    ),
    "the sampler of a batch sampler": (
        {"batch_sampler": lambda: BatchSampler(range(N), 2, False)},
        lambda loader: setattr(loader.batch_sampler, "sampler", range(N - 1, -1, -1)),
    ),
    "the lengths of buckets": (
        {"batch_sampler": lambda: BucketBatchSampler([*range(1, N + 1)], 2, generator=generator())},
        lambda loader: loader.batch_sampler.generator.manual_seed(8),
    ),
    "the seed of the loader": ({"shuffle": True, "seed": 3}, lambda loader: setattr(loader, "seed", 4)),
}


def abs_of_minus(value):
    return abs(-value - 50)


def negated(samples):
    return -default_collate(samples)


def made(options, pipe, num_workers, **more):
    options = {name: value() if callable(value) else value for name, value in options.items()}
    options.setdefault("collate_fn", Collate())
    if "batch_sampler" not in options:
        options["batch_size"] = 2
    return DataLoader(Rows(pipe), num_workers=num_workers, **options, **more)


def count_reads(pipe, count):
    """Wait for `count` reads."""
    while count:
        count -= len(os.read(pipe, count))


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_drops_early_batches(name, processes, pipe):
    options, change = CHANGES[name]
    before = by_default.__defaults__[0][:]
    plain, loader = made(options, None, 0), made(options, pipe[1], 2, transport=processes)
    try:
        first = [batch.tolist() for batch in plain]
        assert [batch.tolist() for batch in loader] == first
        count_reads(pipe[0], N + EARLY)
        assert loader._pool.early is not None
        for each in (plain, loader):
            if name != "a default of collate_fn" or each is plain:  # both loaders have the same function
                change(each)
        second = [batch.tolist() for batch in plain]
        assert second != first
        assert [batch.tolist() for batch in loader] == second
        count_reads(pipe[0], sum(map(len, second)))  # all were read again
        assert [batch.tolist() for batch in loader] == [batch.tolist() for batch in plain]
    finally:
        by_default.__defaults__[0][:] = before


@pytest.mark.parametrize("kind", ["a global", "an attribute of the class"])
def test_a_change_of_what_all_objects_share_drops_early_batches(kind, processes, pipe, monkeypatch):
    loader = made({}, pipe[1], 2, transport=processes)
    assert [float(batch[0]) for batch in loader] == [0, 2, 4, 6, 8, 10]
    count_reads(pipe[0], N + EARLY)
    if kind == "a global":
        monkeypatch.setattr(f"{__name__}.OFFSET", 10)
    else:
        monkeypatch.setattr(Rows, "shift", 10)
    assert [float(batch[0]) for batch in loader] == [10, 12, 14, 16, 18, 20]
    count_reads(pipe[0], N)


def test_nothing_changes_and_nothing_is_read_again(processes, pipe):
    loader = made({}, pipe[1], 2, transport=processes)
    first = [batch.tolist() for batch in loader]
    count_reads(pipe[0], N + EARLY)
    assert [batch.tolist() for batch in loader] == first
    count_reads(pipe[0], N - EARLY + EARLY)  # the rest of this epoch, and the first batches of the third
    assert loader._pool.early is not None
