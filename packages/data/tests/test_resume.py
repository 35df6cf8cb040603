"""A loader resumes exactly at its position, in another process or another loader."""

from __future__ import annotations

import json

import pytest

import rushlight_core as core
from rushlight_data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    WeightedRandomSampler,
    get_worker_info,
)


class Draws(Dataset):
    read: list[int] = []

    def __len__(self):
        return 19

    def __getitem__(self, i):
        Draws.read.append(i)
        return i, core.rand(()).item()


def plain(batch):
    return [column.tolist() for column in batch]


def make(kind, num_workers=0, **options):
    generator = core.Generator().manual_seed(1)
    sampler = None
    if kind == "weighted":
        sampler = WeightedRandomSampler([1.0 + i for i in range(19)], 19)
    if kind == "own generator":
        sampler = RandomSampler(range(19), generator=core.Generator().manual_seed(8))
    return DataLoader(
        Draws(), 4, shuffle=kind in ("shuffle", "seed"), sampler=sampler, generator=generator,
        num_workers=num_workers, seed=5 if kind == "seed" else None, **options,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["plain", "shuffle", "seed", "weighted", "own generator"])
@pytest.mark.parametrize("taken", [0, 1, 3, 5])
def test_mid_epoch(kind, taken):
    core.manual_seed(0)
    loader = make(kind)
    first = [plain(b) for b in loader]
    iterator = iter(loader)
    second = [plain(next(iterator)) for _ in range(taken)]
    state = json.loads(json.dumps(loader.state_dict()))
    second += [plain(b) for b in iterator]

    core.manual_seed(12345)  # the state does not depend on the global stream
    other = make(kind)
    other.load_state_dict(state)
    assert other.state_dict() == state
    Draws.read.clear()
    rest = [plain(b) for b in other]
    if taken < 5:
        assert rest == second[taken:]
        assert len(Draws.read) == 19 - 4 * taken  # the earlier batches are not read again
    else:
        # All batches were returned, but not the StopIteration: the resumed epoch has no batches left.
        assert rest == []
    assert len(first) == len(second) == 5


@pytest.mark.parametrize("kind", ["shuffle", "seed"])
def test_later_epochs_agree(kind):
    core.manual_seed(0)
    loader = make(kind)
    list(loader)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    expected = [[plain(b) for b in iterator], [plain(b) for b in loader], [plain(b) for b in loader]]
    other = make(kind)
    other.load_state_dict(state)
    assert [[plain(b) for b in other] for _ in range(3)] == expected


def test_between_epochs():
    loader = make("seed")
    list(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["batches"]) == (1, 0)
    expected = [plain(b) for b in loader]
    other = make("seed")
    other.load_state_dict(state)
    assert [plain(b) for b in other] == expected


def test_with_workers_what_is_read_ahead_is_not_lost(processes):
    for saved_by, resumed_by in ((2, 0), (0, 2), (2, 3)):
        options = [
            {"num_workers": n, **({"transport": processes} if n else {})} for n in (saved_by, resumed_by)
        ]
        loader = make("seed", **options[0])
        iterator = iter(loader)
        taken = [plain(next(iterator)) for _ in range(2)]
        state = loader.state_dict()
        rest = [plain(b) for b in iterator]
        other = make("seed", **options[1])
        other.load_state_dict(state)
        assert [plain(b) for b in other] == rest
        assert taken + rest == [plain(b) for b in make("seed")]


class Stream(IterableDataset):
    def __init__(self, n=17):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.n, step):
            yield i, core.rand(()).item()


class StatefulStream(Stream):
    """A stream whose state contains its position."""

    at = 0

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        start, self.at = self.at, 0
        for i in range(first + start * step, self.n, step):
            self.at = (i - first) // step + 1
            Draws.read.append(i)
            yield i, core.rand(()).item()
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


@pytest.mark.parametrize("kind", [Stream, StatefulStream])
@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("taken", [1, 4])
def test_streams(kind, num_workers, taken, processes):
    def make():
        options = {"num_workers": num_workers, "transport": processes} if num_workers else {}
        return DataLoader(kind(), 3, seed=4, **options)

    loader = make()
    iterator = iter(loader)
    for _ in range(taken):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [plain(b) for b in iterator]
    other = make()
    other.load_state_dict(state)
    Draws.read.clear()
    assert [plain(b) for b in other] == rest
    if kind is StatefulStream and num_workers == 0:
        assert len(Draws.read) == 17 - 3 * taken


def test_sampler_of_another_make_is_skipped_through():
    drawn = []

    def indices():
        for i in range(10):
            drawn.append(i)
            yield i

    class Plain:
        def __iter__(self):
            return indices()

    loader = DataLoader(Draws(), 2, sampler=Plain())
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = loader.state_dict()
    other = DataLoader(Draws(), 2, sampler=Plain())
    other.load_state_dict(state)
    assert [plain(b)[0] for b in other] == [[4, 5], [6, 7], [8, 9]]


def test_sampler_with_its_own_state():
    class Rotated:
        start = 0

        def __iter__(self):
            return iter([(i + self.start) % 6 for i in range(6)])

        def state_dict(self):
            return {"start": self.start}

        def load_state_dict(self, state):
            self.start = state["start"]

    sampler = Rotated()
    sampler.start = 2
    loader = DataLoader(Draws(), 2, sampler=sampler)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    other = DataLoader(Draws(), 2, sampler=Rotated())
    other.load_state_dict(state)
    assert [plain(b)[0] for b in other] == [[4, 5], [0, 1]]


def test_states_that_do_not_fit():
    loader = make("plain")
    for state in ({}, [], {"version": 99, "epoch": 0, "batches": 0}):
        with pytest.raises(ValueError, match="load_state_dict"):
            loader.load_state_dict(state)
    stream = DataLoader(Stream(), 3)
    next(iter(stream))
    with pytest.raises(ValueError, match="style"):
        loader.load_state_dict(stream.state_dict())
    with pytest.raises(ValueError, match="1 workers, but this loader has 2"):
        DataLoader(Stream(), 3, num_workers=2).load_state_dict(stream.state_dict())


def test_out_of_order_has_no_state(transport):
    loader = DataLoader(range(8), 2, num_workers=2, in_order=False, transport=transport)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(ValueError, match="in_order"):
        loader.state_dict()
    list(iterator)
    assert loader.state_dict()["epoch"] == 1


def saved(taken=2, length=20, batch_size=4, **options):
    """Return a state from the middle of an epoch."""
    loader = DataLoader(range(length), batch_size, seed=1, **options)
    iterator = iter(loader)
    for _ in range(taken):
        next(iterator)
    return json.loads(json.dumps(loader.state_dict()))


@pytest.mark.parametrize(
    ("loader", "what"),
    [
        (lambda: DataLoader(range(20), 10, shuffle=True), "batch_size=4, .* batch_size=10"),
        (lambda: DataLoader(range(20), None, shuffle=True), "batch_size=4, .* batch_size=None"),
        (lambda: DataLoader(range(20), 4), "sampler='RandomSampler', .* sampler='SequentialSampler'"),
        (
            lambda: DataLoader(range(20), 4, sampler=[*range(20)]),
            "sampler='RandomSampler', .* sampler='list'",
        ),
        (lambda: DataLoader(range(15), 4, shuffle=True), "dataset_length=20, .* dataset_length=15"),
    ],
)
def test_other_arguments_do_not_resume(loader, what):
    loader = loader()
    with pytest.raises(ValueError, match=rf"load_state_dict\(state_dict\): the state was saved with {what}"):
        loader.load_state_dict(saved(shuffle=True))
    loader.load_state_dict({"version": 1, "epoch": 3, "batches": 0})  # a state between epochs
    assert sorted(flat(loader)) == [*range(len(loader.dataset))]


def flat(loader):
    return [i for batch in loader for i in core.as_tensor(batch).reshape(-1).tolist()]


def test_batch_sampler_with_the_same_arguments_resumes():
    state = saved()
    loader = DataLoader(range(20), seed=1, batch_sampler=BatchSampler(SequentialSampler(range(20)), 4, False))
    loader.load_state_dict(state)
    assert flat(loader) == [*range(8, 20)]


@pytest.mark.parametrize(
    "change",
    [
        {"batches": -3}, {"batches": 2.5}, {"batches": "2"}, {"batches": None}, {"batches": 10**9}, {"epoch": "x"},
        {"epoch": -1}, {"seed": "x"}, {"samples": -1}, {"streams": [1]},
    ],
    ids=str,
)  # fmt: skip
def test_malformed_states(change):
    loader = DataLoader(range(20), 4, seed=1)
    with pytest.raises(ValueError, match=r"DataLoader.load_state_dict\(state_dict\)"):
        loader.load_state_dict(saved() | change)
    assert flat(loader) == [*range(20)]


@pytest.mark.parametrize("missing", ["version", "epoch", "batches", "samples", "seed"])
def test_states_that_lack_an_entry(missing):
    state = saved()
    del state[missing]
    with pytest.raises(ValueError, match=r"DataLoader.load_state_dict\(state_dict\)"):
        DataLoader(range(20), 4, seed=1).load_state_dict(state)


def test_states_that_samplers_cannot_load():
    loader = DataLoader(range(20), 4, shuffle=True)
    loader.load_state_dict(saved(shuffle=True) | {"order": {"x": 1}})
    with pytest.raises(ValueError, match=r"RandomSampler.load_state_dict\(state_dict\): .* entry 'seed'"):
        iter(loader)
    with pytest.raises(
        ValueError, match=r"DistributedSampler.load_state_dict\(state_dict\): .* entry 'epoch'"
    ):
        DistributedSampler(range(4), 1, 0).load_state_dict({})


def test_streams_resume_with_another_batch_size_only_by_their_state():
    def state(kind):
        loader = DataLoader(kind(), 3)
        next(iter(loader))
        return loader.state_dict()

    loader = DataLoader(StatefulStream(), 2)
    loader.load_state_dict(state(StatefulStream))
    assert next(plain(batch)[0] for batch in loader) == [3, 4]
    with pytest.raises(ValueError, match=r"batch_size=3, .* batch_size=2"):
        DataLoader(Stream(), 2).load_state_dict(state(Stream))


class Shuffled:
    """A sampler whose random order is not part of a state."""

    def __init__(self, length=20):
        self.length = length

    def __iter__(self):
        return iter(core.randperm(self.length).tolist())


class ShuffledBatches(BatchSampler):
    def __iter__(self):
        order = iter(core.randperm(20).tolist())
        return iter([[next(order) for _ in range(4)] for _ in range(5)])


@pytest.mark.parametrize(
    "options",
    [
        lambda: {"sampler": Shuffled(), "batch_size": 4},
        lambda: {"sampler": Shuffled(), "batch_size": None},
        lambda: {"batch_sampler": BatchSampler(Shuffled(), 4, False)},
        lambda: {"batch_sampler": ShuffledBatches(Shuffled(), 4, False)},
    ],
    ids=["sampler", "without batches", "wrapped", "batch sampler"],
)
@pytest.mark.parametrize("num_workers", [0, 1])
def test_order_that_cannot_be_restored(options, num_workers):
    core.manual_seed(0)
    loader = DataLoader(range(20), num_workers=num_workers, **options())
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))

    core.manual_seed(1)
    other = DataLoader(range(20), num_workers=num_workers, **options())
    other.load_state_dict(state)
    for _ in range(2):  # the state is not dropped by the error
        with pytest.raises(ValueError, match="does not return the same indices as when the state was saved"):
            iter(other)
    assert other.state_dict() == state


def test_order_of_a_sampler_that_became_shorter():
    loader = DataLoader(range(20), 4, sampler=[*range(20)])
    iterator = iter(loader)
    next(iterator), next(iterator)
    other = DataLoader(range(20), 4, sampler=[*range(6)])
    other.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="list does not return the same indices"):
        iter(other)
