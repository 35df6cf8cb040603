"""Permutations that are computed item by item."""

from __future__ import annotations

import collections
import itertools
import math

import pytest

import rushlight_core as core
from rushlight_data import DataLoader, Permutation, PermutationSampler


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 31, 32, 33, 1000, 4097, 10_000])
def test_every_index_once(length):
    for seed in range(3):
        order = Permutation(length, seed)
        items = list(order)
        assert sorted(items) == list(range(length))
        assert len(order) == length
        assert [order[i] for i in range(min(length, 50))] == items[:50]
        assert order[::-7] == items[::-7]
        assert list(order.iter_from(length // 3)) == items[length // 3 :]


def test_all_orders_of_few_are_about_equally_frequent():
    """Chi-squared over the 24 orders of 4 items: 23 degrees of freedom, of which 99.9 % are below 49.7."""
    count = 4800
    counts = collections.Counter(tuple(Permutation(4, seed)) for seed in range(count))
    expected = count / math.factorial(4)
    assert len(counts) == 24
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < 49.7


def test_neighbours_do_not_stay_neighbours():
    items = list(Permutation(100_000, 1))
    steps = collections.Counter(b - a for a, b in itertools.pairwise(items))
    assert max(steps.values()) < 12  # the most frequent of about 200,000 differences
    moved = sum(abs(item - i) for i, item in enumerate(items)) / len(items)
    assert moved == pytest.approx(len(items) / 3, rel=0.01)


def test_billions_take_no_memory():
    length = 1 << 61
    order = Permutation(length, 7)
    items = order[length - 5 :]
    assert len(set(items)) == 5
    assert all(0 <= item < length for item in items)
    assert order[-1] == items[-1]
    assert max(items) > length // 100


@pytest.mark.parametrize("length", [-1, 1 << 62])
def test_length_out_of_range(length):
    with pytest.raises(ValueError, match="length"):
        Permutation(length, 0)


@pytest.mark.parametrize("index", [3, -4])
def test_index_out_of_range(index):
    with pytest.raises(IndexError, match="out of range"):
        Permutation(3, 0)[index]


def test_sampler_is_resumed_at_once():
    class Rows:
        def __len__(self):
            return 10**10

        def __getitem__(self, i):
            return i

    def make():
        return DataLoader(Rows(), 4, sampler=PermutationSampler(Rows()))

    loader = make()
    iterator = iter(loader)
    next(iterator)
    state = dict(loader.state_dict(), batches=10**9)  # as if 10**9 batches had been returned
    other = make()
    other.load_state_dict(state)
    order = Permutation(10**10, state["order"]["seed"])
    assert next(iter(other)).tolist() == order[4 * 10**9 : 4 * 10**9 + 4]


def test_sampler_draws_its_seed():
    core.manual_seed(1)
    first, second = (list(sampler) for sampler in [PermutationSampler(range(50))] for _ in range(2))
    assert first != second
    assert len(PermutationSampler(range(50))) == 50
    core.manual_seed(1)
    assert list(PermutationSampler(range(50))) == first
