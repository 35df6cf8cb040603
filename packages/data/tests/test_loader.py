"""The batches of the DataLoader, for every number of workers and every transport."""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import sys

import numpy as np
import pytest

import rushlight_core as core
from rushlight_data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    get_worker_info,
)  # fmt: skip
from rushlight_data.pinning import memory_can_be_pinned
from rushlight_data.random_streams import thread_safe_generator


class Numbers(Dataset):
    """Sample i: a tensor large enough for shared memory, numbers, and draws from every random stream."""

    def __init__(self, n=23):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        draws = [random.random(), float(np.random.rand()), core.rand(()).item()]
        return core.full((40, 30), float(i)), {"i": i, "name": f"n{i}"}, core.tensor(draws)


class Stream(IterableDataset):
    """A stream of 0 … n - 1, divided between the workers, each with a random number."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.n, step):
            yield i, random.random()


def plain(batch):
    tensors, info, draws = batch
    return tensors[:, 3, 4].tolist(), info["i"].tolist(), list(info["name"]), draws.tolist()


def epochs(loader, n=1):
    return [[plain(batch) for batch in loader] for _ in range(n)]


@pytest.fixture(scope="module")
def expected():
    return epochs(DataLoader(Numbers(), 4, shuffle=True, seed=7), 2)


@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_same_batches_and_draws_for_any_number_of_workers(processes, num_workers, expected):
    loader = DataLoader(Numbers(), 4, shuffle=True, seed=7, num_workers=num_workers, transport=processes)
    assert epochs(loader, 2) == expected


def test_same_with_persistent_workers(processes, expected):
    loader = DataLoader(
        Numbers(), 4, shuffle=True, seed=7, num_workers=2, persistent_workers=True, transport=processes
    )
    pids = []
    for epoch in expected:
        iterator = iter(loader)
        pids.append([worker.process.pid for worker in iterator._pool.workers])
        assert [plain(batch) for batch in iterator] == epoch
    assert pids[0] == pids[1]


def test_draws_per_sample_do_not_depend_on_batches(processes):
    def draws(**options):
        loader = DataLoader(Numbers(), seed=7, streams="sample", **options)
        return [draw for _, _, _, batch in epochs(loader)[0] for draw in batch]

    whole = draws(batch_size=23)
    assert len({tuple(draw) for draw in whole}) == 23
    assert draws(batch_size=4) == whole
    assert draws(batch_size=5, num_workers=2, transport=processes) == whole


def test_epochs_differ_and_no_stream_repeats(expected):
    first, second = expected
    assert [b[1] for b in first] != [b[1] for b in second]
    draws = [tuple(draw) for epoch in expected for batch in epoch for draw in batch[3]]
    assert len(set(draws)) == len(draws)


def test_threads_give_the_same_samples(transport):
    loader = DataLoader(Numbers(), 4, num_workers=2, transport=transport)
    assert [batch[1] for batch in epochs(loader)[0]] == [
        list(range(i, min(i + 4, 23))) for i in range(0, 23, 4)
    ]


class Drawn(Dataset):
    def __getitem__(self, index):
        return core.rand(3, generator=thread_safe_generator())

    def __len__(self):
        return 23


def test_draws_of_threads_do_not_depend_on_each_other(transport, processes):
    def draws(**options):
        return [batch.tolist() for batch in DataLoader(Drawn(), 4, seed=7, **options)]

    assert thread_safe_generator() is None
    alone = draws()
    assert draws(num_workers=2, transport=transport) == alone
    assert draws(num_workers=3, transport=transport) == alone
    assert draws(num_workers=2, transport=processes) == alone


def test_reading_does_not_disturb_the_callers_streams(processes):
    def run(num_workers):
        options = {"num_workers": num_workers, "transport": processes} if num_workers else {}
        random.seed(1), np.random.seed(1), core.manual_seed(1)
        drawn = []
        for _ in DataLoader(Numbers(), 6, shuffle=True, **options):
            drawn.append((random.random(), np.random.rand(), core.rand(()).item()))
        return drawn

    assert run(0) == run(2)


def test_global_seed_decides_everything():
    def run():
        core.manual_seed(11)
        loader = DataLoader(Numbers(), 4, shuffle=True)
        return epochs(loader, 2)

    assert run() == run()


def test_generator_decides_everything(processes):
    def run(num_workers, **options):
        generator = core.Generator().manual_seed(5)
        return epochs(
            DataLoader(Numbers(), 4, shuffle=True, generator=generator, num_workers=num_workers, **options), 2
        )

    first = run(0)
    core.manual_seed(99)
    assert run(2, transport=processes) == first


def test_without_streams_workers_are_seeded_once(processes):
    def run(num_workers):
        core.manual_seed(2)
        loader = DataLoader(Numbers(), 4, num_workers=num_workers, streams=None, transport=processes)
        return epochs(loader)

    one = run(1)
    assert one == run(1)
    draws = [tuple(draw) for batch in run(2)[0] for draw in batch[3]]
    assert len(set(draws)) == len(draws)  # two workers draw different numbers


def test_sizes_and_last_batch():
    def sizes(**options):
        loader = DataLoader(range(10), **options)
        got = [len(batch) for batch in loader]
        assert len(loader) == len(got)
        return got

    assert sizes() == [1] * 10
    assert sizes(batch_size=4) == [4, 4, 2]
    assert sizes(batch_size=4, drop_last=True) == [4, 4]
    assert sizes(batch_sampler=[[1, 2], [3]]) == [2, 1]
    assert sizes(sampler=[5, 6, 7], batch_size=2) == [2, 1]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_unbatched(transport, num_workers):
    options = {"num_workers": num_workers, "transport": transport} if num_workers else {}
    loader = DataLoader([np.float32(1), "a", {"x": np.ones(1)}], batch_size=None, **options)
    number, text, mapping = loader
    assert number.item() == 1
    assert text == "a"
    assert mapping["x"].tolist() == [1]
    assert len(loader) == 3


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_tensor_dataset(transport, num_workers):
    options = {"num_workers": num_workers, "transport": transport} if num_workers else {}
    x, y = core.arange(60.0).reshape(20, 3), core.arange(20)
    for dataset in (TensorDataset(x, y), Subset(TensorDataset(x, y), range(20))):
        batches = list(DataLoader(dataset, 8, shuffle=True, **options))
        assert [len(b) for b in batches] == [2, 2, 2]
        where = core.cat([b[1] for b in batches])
        assert sorted(where.tolist()) == list(range(20))
        assert core.cat([b[0] for b in batches]).tolist() == x[where].tolist()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_iterable(transport, num_workers):
    options = {"num_workers": num_workers, "transport": transport} if num_workers else {}
    loader = DataLoader(Stream(11), 2, **options)
    for _ in range(2):
        seen = [batch[0].tolist() for batch in loader]
        assert sorted(i for batch in seen for i in batch) == list(range(11))
        if num_workers:
            assert seen == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    assert all(len(b[0]) == 2 for b in DataLoader(Stream(11), 2, drop_last=True, **options))
    assert [i for i, _ in DataLoader(Stream(4), None, **options)] == [0, 1, 2, 3]


def test_uneven_streams(transport):
    class Uneven(IterableDataset):
        def __iter__(self):
            return iter(range([0, 7, 2][get_worker_info().id]))

    batches = [b.tolist() for b in DataLoader(Uneven(), 2, num_workers=3, transport=transport)]
    assert batches == [[0, 1], [0, 1], [2, 3], [4, 5], [6]]


def test_as_they_come(transport):
    loader = DataLoader(range(12), 2, num_workers=2, in_order=False, transport=transport)
    assert sorted(i for batch in loader for i in batch.tolist()) == list(range(12))


def test_a_held_up_batch_lets_others_pass(transport, tmp_path):
    # Sample 0 waits until sample 3 has been returned, which is only possible out of order.
    mark = tmp_path / "taken"

    class Waits(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            import time

            while i == 0 and not mark.exists():
                time.sleep(0.005)
            return i

    seen = []
    for batch in DataLoader(Waits(), 1, num_workers=2, in_order=False, transport=transport):
        seen.append(batch.item())
        if seen[-1] == 3:
            mark.touch()
    assert sorted(seen) == [0, 1, 2, 3]
    assert seen.index(3) < seen.index(0)


def test_worker_info_and_init(processes):
    class Info(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            info = get_worker_info()
            assert info.dataset is self
            assert core.get_num_threads() == 1
            return info.id, info.num_workers, info.seed, os.getpid(), self.told

    def init(worker_id):
        get_worker_info().dataset.told = worker_id + 100

    rows = [
        tuple(v.item() for v in row)
        for row in DataLoader(Info(), 1, num_workers=2, worker_init_fn=init, transport=processes)
    ]
    assert {row[0] for row in rows} <= {0, 1}
    assert all(row[1] == 2 and row[4] == 100 + row[0] for row in rows)
    assert len({row[2] for row in rows}) == len({row[0] for row in rows})
    assert os.getpid() not in {row[3] for row in rows}
    assert get_worker_info() is None


def test_collate_fn_and_other_objects(transport):
    loader = DataLoader(
        range(6), 3, collate_fn=lambda samples: ("sum", sum(samples)), num_workers=1, transport=transport
    )
    assert list(loader) == [("sum", 3), ("sum", 12)]


def test_getitems(transport):
    class AtOnce(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            raise AssertionError

        def __getitems__(self, indices):
            return [10 * i for i in indices]

    for options in ({}, {"num_workers": 1, "transport": transport}):
        assert [b.tolist() for b in DataLoader(AtOnce(), 4, **options)] == [[0, 10, 20, 30], [40, 50]]


def test_large_batches_of_other_objects(transport):
    # The messages in both directions exceed the capacity of a pipe: neither process may wait for the other.
    loader = DataLoader(
        range(120_000),
        60_000,
        collate_fn=lambda s: ["x" * 40] * len(s),
        num_workers=1,
        prefetch_factor=4,
        transport=transport,
    )
    assert [len(batch) for batch in loader] == [60_000, 60_000]


def test_batches_stay_whole_while_others_come(processes):
    kept = list(DataLoader(Numbers(60), 2, num_workers=2, transport=processes))
    for i, batch in enumerate(kept):
        assert plain(batch)[0] == [2.0 * i, 2 * i + 1]


def test_several_iterators_at_once(transport):
    loader = DataLoader(range(9), 2, num_workers=1, transport=transport)
    pairs = [(a.tolist(), b.tolist()) for a, b in zip(loader, loader, strict=True)]
    assert all(a == b for a, b in pairs)
    assert len(pairs) == 5


def test_a_new_iteration_ends_the_one_before_with_persistent_workers(transport):
    loader = DataLoader(range(20), 2, num_workers=2, persistent_workers=True, transport=transport)
    first = iter(loader)
    next(first)
    assert [b.tolist()[0] for b in loader] == list(range(0, 20, 2))
    with pytest.raises(RuntimeError, match="persistent_workers"):
        next(first)
    assert len(list(loader)) == 10


def test_end_stays_the_end():
    iterator = iter(DataLoader(range(2)))
    assert len(iterator) == 2
    assert len(list(iterator)) == 2
    assert next(iterator, "end") == "end"


def test_start_methods(run_script, processes):
    # Workers run in a new interpreter, for which the loader's arguments are pickled.
    run_script(
        """
        import sys
        import rushlight_core as core
        from rushlight_data import DataLoader, Dataset
        if sys.argv[1] == "pickling":
            from rushlight_data.transport import PicklingTransport as Transport
        else:
            from rushlight_multiprocessing.transport import SharedMemoryTransport as Transport

        class Rows(Dataset):
            def __len__(self):
                return 10

            def __getitem__(self, i):
                return core.full((50, 50), float(i)), core.rand(1)

        def read(**options):
            return [(x[:, 0, 0].tolist(), r.tolist()) for x, r in DataLoader(Rows(), 4, seed=1, **options)]

        if __name__ == "__main__":
            expected = read()
            for method in ("spawn", "forkserver"):
                assert read(num_workers=2, transport=Transport(), multiprocessing_context=method) == expected
        """,
        processes.name,
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"num_workers": -1}, "num_workers"),
        ({"timeout": -1}, "timeout"),
        ({"prefetch_factor": 2}, "prefetch_factor"),
        ({"persistent_workers": True}, "persistent_workers"),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context"),
        ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor"),
        ({"sampler": [1], "shuffle": True}, "sampler"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler"),
        ({"batch_sampler": [[1]], "shuffle": True}, "batch_sampler"),
        ({"batch_sampler": [[1]], "sampler": [1]}, "batch_sampler"),
        ({"batch_sampler": [[1]], "drop_last": True}, "batch_sampler"),
        ({"batch_size": None, "drop_last": True}, "drop_last"),
        ({"batch_size": 0}, "batch_size"),
        ({"streams": "worker"}, "streams"),
    ],
)
def test_bad_arguments(options, match):
    with pytest.raises(ValueError, match=match):
        DataLoader(range(3), **options)


@pytest.mark.parametrize(
    "options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}, {"batch_size": 0}]
)
def test_bad_arguments_for_a_stream(options):
    with pytest.raises(ValueError, match="DataLoader"):
        DataLoader(Stream(3), **options)
    DataLoader(Stream(3), shuffle=False)


def test_unknown_transport():
    with pytest.raises(ValueError, match="carrier pigeon"):
        iter(DataLoader(range(3), num_workers=1, transport="carrier pigeon"))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("num_workers", "2", TypeError), ("num_workers", 1.5, TypeError), ("num_workers", None, TypeError),
        ("prefetch_factor", 1.5, TypeError), ("prefetch_factor", "2", TypeError),
        ("seed", "x", TypeError), ("seed", 1.5, TypeError),
        ("timeout", "1", TypeError), ("timeout", None, TypeError), ("timeout", math.nan, ValueError),
        ("timeout", math.inf, ValueError),
    ],
)  # fmt: skip
def test_arguments_of_the_wrong_type_are_named(name, value, error):
    with pytest.raises(error, match=rf"DataLoader\({name}\): must be .*, got {value!r}"):
        DataLoader(range(4), **({"num_workers": 1} | {name: value}))


def test_integers_of_numpy():
    def samples(integer):
        options = {name: integer(2) for name in ("num_workers", "prefetch_factor", "seed")}
        return [batch.tolist() for batch in DataLoader(range(8), 4, shuffle=True, timeout=60.0, **options)]

    assert samples(np.int64) == samples(int)


def test_what_is_fixed():
    loader = DataLoader(range(3), 2)
    for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=name):
            setattr(loader, name, None)
    loader.num_workers = 0


def test_attributes():
    loader = DataLoader(
        range(3), 2, shuffle=True, drop_last=True, num_workers=2, generator=(g := core.Generator())
    )
    assert isinstance(loader.sampler, RandomSampler)
    assert loader.batch_sampler.sampler is loader.sampler
    assert (loader.batch_size, loader.drop_last, loader.prefetch_factor, loader.generator) == (2, True, 2, g)
    assert DataLoader(range(3)).prefetch_factor is None
    assert DataLoader(range(3), batch_sampler=[[0]]).batch_size is None


def test_pin_memory_without_a_device():
    if memory_can_be_pinned():
        pytest.skip("there is a device that pins memory")
    with pytest.warns(UserWarning, match="pin_memory"):
        assert len(list(DataLoader(range(3), pin_memory=True))) == 3


def test_pinning_keeps_structure():
    from rushlight_data.pinning import pin

    class Pinnable:
        pinned = False

        def pin_memory(self):
            self.pinned = True
            return self

    got = pin({"a": [Pinnable(), "s"], "b": (Pinnable(), 1)})
    assert got["a"][0].pinned
    assert got["a"][1] == "s"
    assert got["b"][0].pinned


def test_stats(transport):
    loader = DataLoader(range(40), 4, num_workers=2, transport=transport)
    assert "No batch" in loader.stats().verdict
    for _ in loader:
        pass
    stats = loader.stats()
    assert stats.batches == 10
    assert stats.waited >= 0
    assert stats.used >= 0
    assert stats.worked > 0
    assert len(stats.worker_times) == 2
    assert stats.verdict.endswith(".")
    assert "worker 1" in str(stats)


@pytest.mark.parametrize(
    ("waited", "used", "worked", "idle", "num_workers", "match"),
    [
        (9, 1, 9, 0, 0, "num_workers"),
        (0.1, 9, 0.1, 0, 0, "little"),
        (0.1, 9, 2, 8, 2, "the loop is the limit"),
        (5, 5, 9, 1, 2, "loading is the limit"),
        (5, 5, 1, 9, 2, "prefetch_factor"),
    ],
)
def test_verdict(waited, used, worked, idle, num_workers, match):
    from rushlight_data import LoaderStats

    assert match in LoaderStats(num_workers, 10, waited, used, worked, idle).verdict


def test_import_is_light(run_script):
    out = run_script("""
        import sys
        import rushlight_core
        before = set(sys.modules)
        import rushlight_data
        new = {name.split(".")[0] for name in set(sys.modules) - before}
        print(sorted(new & {"numpy", "multiprocessing", "torch"}))
    """)
    assert out == "[]\n"


class FalsyCollation(list):
    """A callable that is an empty list, and therefore false in a condition."""

    def __call__(self, samples):
        return len(samples)


@pytest.mark.parametrize("batch_size", [2, None])
def test_falsy_collate_fn_is_used(batch_size):
    loader = DataLoader(["ab", "cd"], batch_size, collate_fn=FalsyCollation())
    assert list(loader) == ([2] if batch_size else [2, 2])


def test_falsy_sampler_is_used():
    assert list(DataLoader(range(3), sampler=[])) == []
    assert list(DataLoader(range(3), batch_sampler=[])) == []


@pytest.mark.parametrize(("drop_last", "batches"), [(False, 3), (True, 2)])
def test_length_of_a_stream_that_has_one(drop_last, batches):
    class Sized(Stream):
        def __len__(self):
            return self.n

    loader = DataLoader(Sized(8), 3, drop_last=drop_last)
    assert len(loader) == len(list(loader)) == batches
    assert len(DataLoader(Sized(8), None)) == 8


def test_a_context_that_is_none() -> None:
    for bad, error in (("spoon", ValueError), (3, TypeError), (object(), TypeError)):
        with pytest.raises(error, match="multiprocessing_context"):
            DataLoader([1, 2], num_workers=1, multiprocessing_context=bad)
    for good in ("fork", multiprocessing.get_context("spawn"), multiprocessing):
        DataLoader([1, 2], num_workers=1, multiprocessing_context=good)


def test_numpy_that_another_thread_is_importing(monkeypatch):
    """Worker threads may import NumPy lazily. Until the import ends, the module `numpy` has no attributes."""
    import importlib.machinery
    import types

    from rushlight_data import default_collate, default_convert

    half = types.ModuleType("numpy")
    half.__spec__ = importlib.machinery.ModuleSpec("numpy", None)
    half.__spec__._initializing = True
    monkeypatch.setitem(sys.modules, "numpy", half)

    class Draws(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return float(i)

    assert default_collate([("a", 1.0)])[0] == ("a",)
    assert default_convert({"a": 1}) == {"a": 1}
    assert next(iter(DataLoader(Draws(), 2))).tolist() == [0, 1]
