"""Batches of samples with similar lengths."""

from __future__ import annotations

import itertools
import json

import pytest

import rushlight_core as core
from rushlight_data import BucketBatchSampler, DataLoader, TokenBatchSampler

LENGTHS = core.randint(1, 100, (1003,), generator=core.Generator().manual_seed(0)).tolist()


def indices(batches):
    return [i for batch in batches for i in batch]


def padding(batches):
    return sum(
        max(LENGTHS[i] for i in batch) * len(batch) - sum(LENGTHS[i] for i in batch) for batch in batches
    )


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
def test_buckets(shuffle, drop_last):
    sampler = BucketBatchSampler(LENGTHS, 8, bucket_size=80, shuffle=shuffle, drop_last=drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler) == (125 if drop_last else 126)
    found = indices(batches)
    assert len(set(found)) == len(found) == (1000 if drop_last else 1003)
    assert sorted(map(len, batches))[1:] == [8] * (len(batches) - 1)
    assert padding(batches) < padding([list(range(i, min(i + 8, 1003))) for i in range(0, 1003, 8)]) / 3
    assert (list(sampler) == batches) is not shuffle
    if not shuffle:
        assert sorted(indices(batches[:10])) == list(range(80))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("max_batch_size", [None, 5])
def test_token_budget(shuffle, max_batch_size):
    sampler = TokenBatchSampler(LENGTHS, 400, max_batch_size=max_batch_size, shuffle=shuffle)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert sorted(indices(batches)) == list(range(1003))
    for batch in batches:
        assert len(batch) * max(LENGTHS[i] for i in batch) <= 400
        assert max_batch_size is None or len(batch) <= max_batch_size
    ordered = sorted(batches, key=lambda batch: sorted(LENGTHS[i] for i in batch))
    for batch, after in itertools.pairwise(ordered):
        longest = max(LENGTHS[i] for i in batch)
        assert longest <= min(LENGTHS[i] for i in after)
    again = list(sampler)
    assert (again == batches) is not shuffle
    assert {frozenset(batch) for batch in again} != {frozenset(batch) for batch in batches} or not shuffle
    assert len(again) == len(batches)


@pytest.mark.parametrize(
    "make", [lambda: BucketBatchSampler(LENGTHS, 8), lambda: TokenBatchSampler(LENGTHS, 400)]
)
@pytest.mark.parametrize("seed", [None, 3])
def test_resume(make, seed):
    loader = DataLoader(LENGTHS, batch_sampler=make(), seed=seed)
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [batch.tolist() for batch in iterator]
    other = DataLoader(LENGTHS, batch_sampler=make(), seed=seed)
    other.load_state_dict(state)
    assert [batch.tolist() for batch in other] == rest
    assert len(rest) == len(other) - 5


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: BucketBatchSampler([1.5], 2), "lengths"),
        (lambda: BucketBatchSampler([[1]], 2), "lengths"),
        (lambda: BucketBatchSampler([-1], 2), "negative"),
        (lambda: BucketBatchSampler([1], 0), "batch_size"),
        (lambda: BucketBatchSampler([1], 2, bucket_size=3), "multiple"),
        (lambda: TokenBatchSampler([1], 0), "max_tokens"),
        (lambda: TokenBatchSampler([1, 7, 2], 5), "sample 1 has length 7"),
        (lambda: TokenBatchSampler([1], 5, max_batch_size=0), "max_batch_size"),
    ],
)
def test_bad_arguments(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_flags_are_bools():
    with pytest.raises(TypeError, match="shuffle"):
        BucketBatchSampler([1], 2, shuffle=1)
    with pytest.raises(TypeError, match="drop_last"):
        BucketBatchSampler([1], 2, drop_last=None)


def test_no_samples():
    assert list(BucketBatchSampler([], 2)) == list(TokenBatchSampler([], 2)) == []
