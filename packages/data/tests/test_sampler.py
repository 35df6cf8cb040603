"""Samplers: their orders, iteration from any start, and resuming from a state."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rushlight_core as core
from rushlight_core._random import stream
from rushlight_core.seams import collectives
from rushlight_data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)  # fmt: skip
from rushlight_data.sampler import iterate


def seeded(seed=0):
    return core.Generator().manual_seed(seed)


def make(kind: str, n: int):
    return {
        "sequential": lambda: SequentialSampler(range(n)),
        "random": lambda: RandomSampler(range(n)),
        "rounds": lambda: RandomSampler(range(n), num_samples=2 * n + 3),
        "replacement": lambda: RandomSampler(range(n), replacement=True, num_samples=n + 5),
        "subset": lambda: SubsetRandomSampler([10 * i for i in range(n)]),
        "weighted": lambda: WeightedRandomSampler([1.0 + i for i in range(n)], n + 2),
        "distributed": lambda: DistributedSampler(range(n), 3, 1),
    }[kind]()


KINDS = ["sequential", "random", "rounds", "replacement", "subset", "weighted", "distributed"]


@pytest.mark.parametrize("kind", KINDS)
@given(n=st.integers(1, 40), start=st.integers(0, 100))
def test_begins_anywhere_and_again(kind, n, start):
    sampler = make(kind, n)
    whole = list(sampler)
    assert len(whole) == len(sampler)
    state = sampler.state_dict() if hasattr(sampler, "state_dict") else None
    other = make(kind, n)
    if state is not None:
        other.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert list(iterate(other, start)) == whole[start:]


@pytest.mark.parametrize("kind", KINDS)
@given(n=st.integers(1, 40), size=st.integers(1, 7), drop_last=st.booleans(), start=st.integers(0, 10))
def test_batches(kind, n, size, drop_last, start):
    sampler = BatchSampler(make(kind, n), size, drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert all(len(batch) == size for batch in batches[:-1])
    items = [item for batch in batches for item in batch]
    again = make(kind, n)
    sampler.load_state_dict(state) if (state := sampler.state_dict()) else None
    assert list(sampler.iter_from(start)) == batches[start:]
    expected = len(again) // size * size if drop_last else len(again)
    assert len(items) == expected


@given(st.integers(0, 50))
def test_random_order_has_each_once(n):
    assert sorted(RandomSampler(range(n))) == list(range(n))


@given(st.integers(1, 20), st.integers(1, 60))
def test_more_samples_than_there_are(n, total):
    counts = Counter(RandomSampler(range(n), num_samples=total))
    assert sum(counts.values()) == total
    assert set(counts.values()) <= {total // n, total // n + 1, 0}


def test_rounds_are_permutations_that_differ():
    drawn = list(RandomSampler(range(50), num_samples=150))
    rounds = [drawn[i : i + 50] for i in range(0, 150, 50)]
    assert all(sorted(one) == list(range(50)) for one in rounds)
    assert len({tuple(one) for one in rounds}) == 3


def test_orders_differ_between_epochs_and_follow_the_generator():
    sampler = RandomSampler(range(100), generator=seeded(1))
    first, second = list(sampler), list(sampler)
    assert first != second
    again = RandomSampler(range(100), generator=seeded(1))
    assert [list(again), list(again)] == [first, second]


def test_order_follows_the_global_stream():
    core.manual_seed(3)
    first = list(RandomSampler(range(50)))
    core.manual_seed(3)
    assert list(RandomSampler(range(50))) == first


def test_order_is_drawn_when_the_iteration_begins():
    sampler = RandomSampler(range(50), generator=seeded(1))
    expected = list(RandomSampler(range(50), generator=seeded(1)))
    iterator = iter(sampler)
    sampler.generator.manual_seed(99)
    assert list(iterator) == expected


def test_order_of_every_random_sampler_is_even():
    # Chi-squared test of the first index: 10 cells, 9 degrees of freedom, and 27.9 is the 0.999 quantile.
    generator = seeded(5)
    for sampler in (
        RandomSampler(range(10), generator=generator),
        SubsetRandomSampler(range(10), generator=generator),
    ):
        counts = Counter(next(iter(sampler)) for _ in range(1000))
        assert sum((counts[i] - 100) ** 2 / 100 for i in range(10)) < 27.9


def test_weights():
    drawn = Counter(WeightedRandomSampler([0, 1, 3], 4000, generator=seeded(2)))
    assert drawn[0] == 0
    assert 2.5 < drawn[2] / drawn[1] < 3.6
    assert sorted(WeightedRandomSampler([1, 1, 1], 3, replacement=False)) == [0, 1, 2]


@given(st.integers(1, 50), st.integers(1, 7), st.booleans(), st.booleans(), st.integers(0, 3))
def test_shares_of_processes(n, replicas, shuffle, drop_last, epoch):
    shares = []
    for rank in range(replicas):
        sampler = DistributedSampler(range(n), replicas, rank, shuffle=shuffle, drop_last=drop_last)
        sampler.set_epoch(epoch)
        shares.append(list(sampler))
        assert len(shares[-1]) == len(sampler)
    seen = Counter(i for share in shares for i in share)
    if drop_last:
        assert len(shares[0]) == n // replicas
        assert all(count == 1 for count in seen.values())
    else:
        assert set(seen) == set(range(n))
    assert len({len(share) for share in shares}) == 1
    if not shuffle and not drop_last:
        assert [share[0] for share in shares] == [rank % n for rank in range(replicas)]


def test_epochs_of_distributed_sampler_differ():
    sampler = DistributedSampler(range(100), 2, 0, seed=4)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first
    sampler.set_epoch(0)
    assert list(sampler) == first


def test_sampler_of_another_make():
    class Odd(Sampler):
        def __iter__(self):
            return iter([1, 3, 5])

    assert list(iterate(Odd(), 1)) == [3, 5]
    assert list(iterate([4, 5, 6], 2)) == [6]
    assert list(BatchSampler([1, 2, 3], 2, False)) == [[1, 2], [3]]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(Sampler())


class Pairs(BatchSampler):
    """A batch sampler that uses nothing of its base class."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter([[i, i + 1] for i in range(0, self.n, 2)])

    def __len__(self):
        return self.n // 2


class Backwards(RandomSampler):
    def __iter__(self):
        return iter(range(len(self.data_source))[::-1])


def test_subclass_with_an_order_of_its_own():
    assert list(iterate(Pairs(6), 1)) == [[2, 3], [4, 5]]
    assert list(iterate(Backwards(range(4)), 1)) == [2, 1, 0]  # does not use the `iter_from` of RandomSampler


def test_subclass_of_distributed_sampler_without_its_init():
    class Fixed(DistributedSampler):
        def __init__(self):
            pass

        def __iter__(self):
            return iter([3, 1])

    assert [batch.tolist() for batch in DataLoader(range(4), 1, sampler=Fixed())] == [[3], [1]]


@pytest.mark.parametrize("seed", [None, 3])
def test_batch_sampler_subclass_without_its_init(seed):
    loader = DataLoader(range(6), batch_sampler=Pairs(6), seed=seed)
    expected = [[0, 1], [2, 3], [4, 5]]
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == expected
    iterator = iter(loader)
    next(iterator)
    other = DataLoader(range(6), batch_sampler=Pairs(6), seed=seed)
    other.load_state_dict(loader.state_dict())
    assert [batch.tolist() for batch in other] == expected[1:]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: RandomSampler([1], replacement=1), TypeError, "replacement"),
        (lambda: RandomSampler([1], num_samples=0), ValueError, "num_samples"),
        (lambda: RandomSampler([1], num_samples=True), ValueError, "num_samples"),
        (lambda: WeightedRandomSampler([1.0], -1), ValueError, "num_samples"),
        (lambda: WeightedRandomSampler([1.0], 1, replacement="yes"), ValueError, "replacement"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, r"got shape \(1, 1\)"),
        (lambda: BatchSampler([1], 0, False), ValueError, "batch_size"),
        (lambda: BatchSampler([1], 2.0, False), ValueError, "batch_size"),
        (lambda: BatchSampler([1], 2, 1), ValueError, "drop_last"),
        (lambda: DistributedSampler([1], 2, 2), ValueError, "rank"),
        (lambda: DistributedSampler([1]), RuntimeError, "num_replicas"),
    ],
)
def test_bad_arguments(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_a_distributed_sampler_takes_rank_and_size_from_the_group() -> None:
    class Group:
        def rank(self) -> int:
            return 2

        def size(self) -> int:
            return 3

    collectives.set_default_group(Group())  # type: ignore[arg-type]
    try:
        sampler = DistributedSampler(range(7), shuffle=False)
        assert (sampler.rank, sampler.num_replicas) == (2, 3)
        assert list(sampler) == [2, 5, 1]
        assert list(DistributedSampler(range(7), rank=0, shuffle=False)) == [0, 3, 6]
    finally:
        collectives.set_default_group(None)


@pytest.mark.parametrize("own", [False, True], ids=["global", "own generator"])
def test_orders_of_pytorchs_stream_are_resumed(own):
    """In the stream "torch", a sampler's state is the state of its generator, which determines the order."""
    with stream("torch"):
        generator = core.Generator().manual_seed(3) if own else None
        samplers = {
            "random": lambda: RandomSampler(range(10), num_samples=25, generator=generator),
            "subset": lambda: SubsetRandomSampler(range(0, 50, 5), generator=generator),
            "weighted": lambda: WeightedRandomSampler([1.0, 2.0, 3.0], 12, generator=generator),
        }
        for name, make in samplers.items():
            sampler = make()
            order = list(sampler)
            state = sampler.state_dict()
            other = make()
            other.load_state_dict(copy.deepcopy(state))
            assert list(other.iter_from(4)) == order[4:], name
            assert other.state_dict().keys() == state.keys()
            assert list(sampler) != order, name
    # The state contains the random stream, so the order is the same outside of the stream "torch".
    sampler = make()
    sampler.load_state_dict(state)
    assert list(sampler) == order
