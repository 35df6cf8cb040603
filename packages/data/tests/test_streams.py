"""Streams: the same order for any number of workers, before and after a resume."""

from __future__ import annotations

import collections
import json
import random

import pytest

import rushlight_core as core
from rushlight_data import (
    ChainDataset,
    DataLoader,
    MixStream,
    ShardStream,
    ShuffleStream,
    Stream,
    get_worker_info,
)

READ: list[int] = []


def read(shard):
    """Yield the samples of a shard. Shards have different lengths, and each sample has a random number."""
    for i in range(shard, shard + 3 + shard % 7):
        READ.append(i)
        yield i


class Noise:
    def __call__(self, samples):
        return core.tensor([float(sample) for sample in samples]), random.random()


def shards(**options):
    return ShardStream(range(0, 1000, 100), read, **options)


def small(**options):
    return ShardStream(range(5000, 5600, 100), read, **options)


KINDS = {
    "shards": lambda: shards(),
    "shuffled shards": lambda: shards(shuffle=True, lanes=3),
    "one lane": lambda: shards(lanes=1),
    "shuffle": lambda: ShuffleStream(shards(shuffle=True, lanes=4), 5),
    "mix": lambda: MixStream([shards(shuffle=True), small(shuffle=True)], [2, 1]),
    "mix to the first end": lambda: MixStream([shards(lanes=2), small(lanes=3)], [2, 1], stop="first"),
    "shuffled mix": lambda: ShuffleStream(MixStream([shards(lanes=3), ShuffleStream(small(), 2)], [1, 1]), 7),
}


def load(kind, num_workers=0, **options):
    if num_workers:
        options.setdefault("transport", "pickling")
    return DataLoader(KINDS[kind](), 3, num_workers=num_workers, seed=4, collate_fn=Noise(), **options)


def batches(loader):
    return [(batch.tolist(), draw) for batch, draw in loader]


@pytest.mark.parametrize("kind", KINDS)
def test_order_does_not_depend_on_workers(kind, processes):
    expected = [batches(loader) for loader in [load(kind)] for _ in range(2)]
    found = {
        n: [batches(x) for x in [load(kind, n, transport=processes)] for _ in range(2)] for n in (1, 2, 5)
    }
    assert found == dict.fromkeys((1, 2, 5), expected)
    samples = [value for batch, _ in expected[0] for value in batch]
    if "first" not in kind:
        every = sorted(iter(KINDS[kind]()))
        assert sorted(samples) == every
        assert len(set(samples)) == len(samples) > 40
    shuffled = [batch for batch, _ in expected[0]] != [batch for batch, _ in expected[1]]
    assert shuffled is (kind not in ("shards", "one lane"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("saved_by", "resumed_by"), [(0, 0), (2, 0), (0, 3), (3, 2)])
def test_resume_with_another_number_of_workers(kind, saved_by, resumed_by):
    whole = batches(load(kind))
    for taken in range(2, len(whole), 11 if saved_by or resumed_by else 1):
        loader = load(kind, saved_by)
        iterator = iter(loader)
        begin = [(batch.tolist(), draw) for batch, draw in (next(iterator) for _ in range(taken))]
        state = json.loads(json.dumps(loader.state_dict()))
        other = load(kind, resumed_by)
        other.load_state_dict(state)
        assert begin + batches(other) == whole
        again = load(kind)
        again.load_state_dict(state)
        iterator = iter(again)  # resume from a loader that was itself resumed
        some = [
            (batch.tolist(), draw)
            for batch, draw in (next(iterator) for _ in range(min(2, len(whole) - taken)))
        ]
        last = load(kind)
        last.load_state_dict(again.state_dict())
        assert begin + some + batches(last) == whole


def test_resume_reads_little_again():
    loader = DataLoader(ShuffleStream(ShardStream([0] * 50, lambda _: read(0), lanes=1), 6), 3, seed=1)
    iterator = iter(loader)
    for _ in range(40):
        next(iterator)
    state = loader.state_dict()
    other = DataLoader(ShuffleStream(ShardStream([0] * 50, lambda _: read(0), lanes=1), 6), 3, seed=1)
    other.load_state_dict(state)
    READ.clear()
    next(iter(other))
    assert len(READ) <= 2 * 6 + 3  # one block, and the beginning of a shard


def test_shuffle_mixes_within_blocks_only():
    order = list(ShuffleStream(ShardStream([range(100)], iter), 10))
    assert order != list(range(100))
    blocks = [[value - begin for value in order[begin : begin + 10]] for begin in range(0, 100, 10)]
    assert all(sorted(block) == list(range(10)) for block in blocks)
    assert len({tuple(block) for block in blocks}) > 5
    firsts = collections.Counter(
        next(iter(ShuffleStream(ShardStream([range(9)], iter), 3))) for _ in range(300)
    )
    assert set(firsts) == {0, 1, 2}
    assert min(firsts.values()) > 60


def test_weights_of_a_mixture():
    streams = [ShardStream([range(i * 10_000, (i + 1) * 10_000)], iter) for i in range(3)]
    iterator = iter(MixStream(streams, [6, 3, 1]))
    counts = collections.Counter(next(iterator) // 10_000 for _ in range(5000))
    # Three standard deviations of these binomial counts are at most 106.
    for which, share in enumerate((0.6, 0.3, 0.1)):
        assert counts[which] == pytest.approx(5000 * share, abs=106)


def test_shards_are_read_by_one_worker_each():
    def pid(shard):
        yield shard, get_worker_info().id

    loader = DataLoader(ShardStream(range(12), pid, lanes=4), 1, num_workers=2, transport="threads")
    readers = {int(shard): int(worker) for shard, worker in loader}
    assert readers == {shard: shard % 4 % 2 for shard in range(12)}


def test_more_workers_than_lanes():
    assert len(list(DataLoader(shards(lanes=2), 100, num_workers=4))) == 2


def test_workers_are_kept():
    loader = DataLoader(shards(lanes=2), 3, num_workers=2)
    pids = []
    for _ in range(2):
        iterator = iter(loader)
        pids.append([worker.process.pid for worker in iterator._pool.workers])
        list(iterator)
    assert pids[0] == pids[1]


def test_error_in_a_shard_names_the_sample_and_ends_the_shard():
    def broken(shard):
        yield shard
        if shard == 1:
            raise OSError("disk")
        yield shard

    for options in ({}, {"num_workers": 2, "transport": "pickling"}):
        loader = DataLoader(ShardStream(range(4), broken, lanes=2), 1, **options)
        iterator = iter(loader)
        seen = [next(iterator).item() for _ in range(3)]
        with pytest.raises(OSError, match="disk") as caught:
            next(iterator)
        assert any("sample 1 of the stream (batch 1)" in note for note in caught.value.__notes__)
        assert seen == [0, 1, 0]
        state = loader.state_dict()
        assert [batch.item() for batch in iterator] == [2, 3, 2, 3]
        other = DataLoader(ShardStream(range(4), broken, lanes=2), 1)
        other.load_state_dict(state)
        assert [batch.item() for batch in other] == [2, 3, 2, 3]


def test_missing_shard_is_passed_over():
    iterator = iter(DataLoader(ShardStream(["a", ""], lambda shard: iter([ord(shard)]), lanes=1), 1))
    assert next(iterator).item() == ord("a")
    with pytest.raises(TypeError, match="ord"):
        next(iterator)
    assert list(iterator) == []


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("num_workers", [0, 1])
def test_errors_in_a_shuffled_block_lose_no_other_samples(num_workers, mixed):
    def broken(shard):
        for i in range(5):
            if shard in (0, 1) and i == 3:
                raise OSError("disk")
            yield shard * 10 + i

    def load(workers=num_workers):
        source = ShardStream(range(4), broken, lanes=1)
        stream = ShuffleStream(MixStream([source], [1]) if mixed else source, 9)
        return DataLoader(stream, 3, num_workers=workers, transport="pickling" if workers else None, seed=0)

    loader, states, samples = load(), [], []
    iterator = iter(loader)
    while True:
        try:
            samples.append(next(iterator).tolist())
        except OSError:
            samples.append("error")
        except StopIteration:
            break
        states.append(json.loads(json.dumps(loader.state_dict())))
    good = sorted(10 * shard + i for shard in range(4) for i in range(3 if shard < 2 else 5))
    assert sorted(value for batch in samples if batch != "error" for value in batch) == good
    assert samples[:2] == ["error", "error"]
    for number, state in enumerate(states[1:], 2):  # later iterations meet the errors of the block again
        resumed = load(0)
        resumed.load_state_dict(state)
        assert [batch.tolist() for batch in resumed] == samples[number:]


def test_state_of_another_stream():
    loader = DataLoader(shards(lanes=2), 3)
    next(iter(loader))
    with pytest.raises(ValueError, match="2 lanes, but this stream has 3"):
        DataLoader(shards(lanes=3), 3, num_workers=1).load_state_dict(loader.state_dict())


def test_streams_can_be_chained():
    assert sorted(ChainDataset([shards(), small()])) == sorted([*shards(), *small()])


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: ShardStream([], iter), ValueError, "at least one"),
        (lambda: ShardStream([1], iter, lanes=2), ValueError, "at most the number of shards, 1, got 2"),
        (lambda: ShardStream([1], iter, lanes=0), ValueError, "lanes"),
        (lambda: ShardStream([1], iter, shuffle=1), TypeError, "shuffle"),
        (lambda: ShuffleStream([1, 2], 3), TypeError, "Stream"),
        (lambda: ShuffleStream(shards(), 0), ValueError, "buffer_size"),
        (lambda: MixStream([], []), ValueError, "at least one"),
        (lambda: MixStream([[1]], [1]), TypeError, "item 0"),
        (lambda: MixStream([shards()], [1, 2]), ValueError, "weights"),
        (lambda: MixStream([shards()], [0]), ValueError, "weights"),
        (lambda: MixStream([shards()], [1], stop="never"), ValueError, "stop"),
        (lambda: next(iter(Incomplete())), NotImplementedError, "iterate"),
    ],
)
def test_bad_arguments(make, error, match):
    with pytest.raises(error, match=match):
        make()


class Incomplete(Stream):
    lanes = 1
