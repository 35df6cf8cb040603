"""Failures while loading: the error, and the resources that remain."""

from __future__ import annotations

import errno
import os
import random
import select
import signal
import sys
import threading
import time

import numpy as np
import pytest

import rushlight_core as core
from rushlight_data import (
    DataLoader,
    Dataset,
    IterableDataset,
    LoaderTimeout,
    StackDataset,
    Subset,
    WorkerError,
    WorkerExited,
)


class Fails(Dataset):
    """A dataset that fails at sample 5 by calling `what`."""

    def __init__(self, what, length=12):
        self.what = what
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        if i == 5:
            self.what()
        return core.full((60, 60), float(i))


def batches(loader):
    return [batch[:, 0, 0].tolist() for batch in loader]


def raise_key_error():
    raise KeyError("no picture")


class PickyError(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def raise_picky():
    raise PickyError("this", "that")


def raise_stop():
    raise StopIteration


class UnpicklableError(Exception):
    def __init__(self):
        super().__init__(lambda: 0)


def raise_unpicklable():
    raise UnpicklableError


@pytest.mark.parametrize("num_workers", [0, 1, 2])
def test_exception_keeps_its_class_and_says_where(transport, num_workers):
    options = {"num_workers": num_workers, "transport": transport} if num_workers else {}
    iterator = iter(DataLoader(Fails(raise_key_error), 2, **options))
    next(iterator), next(iterator)
    with pytest.raises(KeyError, match="no picture") as caught:
        next(iterator)
    error = caught.value
    assert any("reading sample 5 of batch 2" in note for note in error.__notes__)
    if num_workers:
        cause = error.__cause__
        assert isinstance(cause, WorkerError)
        assert (cause.batch, cause.index, cause.indices) == (2, 5, [4, 5])
        assert cause.worker_id in range(num_workers)
        assert (cause.pid != os.getpid()) if transport.isolated else cause.pid is None
        assert "raise_key_error" in cause.traceback
        assert "raise_key_error" in str(cause)
    # The loop may continue with the batch after the failed one.
    assert batches(iterator) == [[6, 7], [8, 9], [10, 11]]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_state_after_a_failure_is_behind_it(transport, num_workers):
    options = {"num_workers": num_workers, "transport": transport} if num_workers else {}
    loader = DataLoader(Fails(raise_key_error), 2, **options)
    iterator = iter(loader)
    with pytest.raises(KeyError):
        list(iterator)
    assert loader.state_dict()["batches"] == 3
    assert loader.state_dict()["samples"] == 6


@pytest.mark.parametrize("raises", [raise_picky, raise_unpicklable])
def test_exception_that_cannot_be_sent(processes, raises):
    iterator = iter(DataLoader(Fails(raises), 4, num_workers=1, transport=processes))
    next(iterator)
    with pytest.raises(WorkerError) as caught:
        next(iterator)
    assert caught.value.index == 5
    assert raises.__name__ in str(caught.value)
    assert len(batches(iterator)) == 1


@pytest.mark.parametrize("num_workers", [0, 1])
def test_stop_iteration_does_not_end_the_loop(transport, num_workers):
    options = {"num_workers": num_workers, "transport": transport} if num_workers else {}
    with pytest.raises(RuntimeError, match="StopIteration"):
        batches(DataLoader(Fails(raise_stop), 4, **options))


@pytest.mark.parametrize("num_workers", [0, 1])
def test_failing_collation(transport, num_workers):
    options = {"num_workers": num_workers, "transport": transport} if num_workers else {}
    loader = DataLoader([core.ones(2), core.ones(3)], 2, **options)
    with pytest.raises(RuntimeError) as caught:
        list(loader)
    assert any("collating batch 0" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("num_workers", [0, 1])
def test_failing_stream(transport, num_workers):
    class Stream(IterableDataset):
        def __iter__(self):
            yield from range(5)
            raise OSError("disk")

    options = {"num_workers": num_workers, "transport": transport} if num_workers else {}
    iterator = iter(DataLoader(Stream(), 3, **options))
    next(iterator)
    with pytest.raises(OSError, match="disk") as caught:
        next(iterator)
    assert any("sample 5 of the stream" in note for note in caught.value.__notes__)


def test_tensor_dataset_names_the_sample(transport):
    from rushlight_data import TensorDataset

    for options in ({}, {"num_workers": 1, "transport": transport}):
        loader = DataLoader(TensorDataset(core.ones(3)), 2, sampler=[0, 1, 2, 30], **options)
        with pytest.raises(IndexError) as caught:
            list(loader)
        assert any("sample 30 of batch 1" in note for note in caught.value.__notes__)


def test_worker_init_fn_that_raises_stop_iteration(transport):
    def init(worker_id):
        raise StopIteration

    with pytest.raises(RuntimeError, match="worker_init_fn raised StopIteration") as caught:
        list(DataLoader(range(4), 2, num_workers=1, worker_init_fn=init, transport=transport))
    assert any("running worker_init_fn" in note for note in caught.value.__notes__)


def test_worker_init_fn_that_fails(transport):
    def init(worker_id):
        raise LookupError("not here")

    with pytest.raises(LookupError, match="not here") as caught:
        list(DataLoader(range(4), 2, num_workers=1, worker_init_fn=init, transport=transport))
    assert any("worker_init_fn" in note for note in caught.value.__notes__)


def test_batch_that_cannot_be_sent(processes):
    loader = DataLoader(range(4), 2, collate_fn=lambda s: lambda: s, num_workers=1, transport=processes)
    with pytest.raises(Exception, match="pickle") as caught:
        list(loader)
    assert any("sending batch 0" in note for note in caught.value.__notes__)


def end_by_signal():
    os.kill(os.getpid(), signal.SIGKILL)


def end_by_exit():
    os._exit(3)


def end_by_system_exit():
    sys.exit(4)


@pytest.mark.parametrize(
    ("end", "code", "match"),
    [
        (end_by_signal, -9, "SIGKILL"),
        (end_by_exit, 3, "exited with code 3"),
        (end_by_system_exit, 4, "exited with code 4"),
    ],
)
@pytest.mark.parametrize("persistent", [False, True])
def test_worker_that_ends(processes, held, end, code, match, persistent):
    before = held.descriptors(), held.mappings()
    loader = DataLoader(Fails(end), 2, num_workers=2, transport=processes, persistent_workers=persistent)
    iterator = iter(loader)
    with pytest.raises(WorkerExited, match=match) as caught:
        list(iterator)
    error = caught.value
    assert error.exitcode == code
    assert 5 in error.lost
    assert error.worker_id in (0, 1)
    assert f"(pid {error.pid})" in str(error)
    assert "while it read sample 5 of batch 2\nUnfinished: batch" in str(error)
    assert "batch 2 (samples 4, 5)" in str(error)
    assert error.index == 5
    assert held.children() == []
    assert next(iterator, "end") == "end"
    # The loader can continue with new workers.
    loader.dataset.what = lambda: None
    assert len(batches(loader)) == 6
    del loader, iterator, error, caught
    assert held.children() == []
    assert held.mappings() == before[1]
    assert held.descriptors() <= before[0]


def test_worker_whose_own_child_lives_on(processes, held):
    pids = []

    class Forks(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            pid = os.fork()  # inherits the worker's end of every pipe
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            (held.path / str(pid)).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        with pytest.raises(WorkerExited, match="SIGKILL"):
            list(DataLoader(Forks(), num_workers=1, transport=processes))
    finally:
        pids = [int(name) for name in os.listdir(held.path)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    assert pids


def test_only_the_worker_replies_if_a_sample_forks(transport):
    ours, theirs = os.pipe()
    children = []  # of this process; it stays empty if the workers are processes

    class Forks(Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, i):
            if i == 5:
                pid = os.fork()
                if pid:
                    children.append(pid)
                    time.sleep(0.1)  # the copy could reply first
            return i

    try:
        loader = DataLoader(Forks(), 4, num_workers=1, transport=transport, persistent_workers=False)
        assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    finally:
        os.close(theirs)
    readable, _, _ = select.select([ours], [], [], 30)
    os.close(ours)
    assert readable, "the copy of the worker has not ended"
    for pid in children:
        os.waitpid(pid, 0)


def test_idle_worker_that_is_killed(processes):
    loader = DataLoader(range(100), 1, num_workers=2, transport=processes)
    iterator = iter(loader)
    next(iterator)
    os.kill(iterator._pool.workers[1].process.pid, signal.SIGKILL)
    with pytest.raises(WorkerExited, match="worker 1"):
        list(iterator)


def test_exit_names_the_sample(transport):
    """A worker that is a thread can end, too, although it cannot crash alone."""
    with pytest.raises(WorkerExited, match="exited with code 3 while it read sample 5 of batch 1") as caught:
        list(DataLoader(Fails(lambda: sys.exit(3)), 3, num_workers=2, transport=transport))
    assert (caught.value.index, caught.value.exitcode) == (5, 3)


def test_crash_in_a_stream_names_the_sample(processes):
    class Stream(IterableDataset):
        def __iter__(self):
            yield from range(7)
            end_by_signal()

    with pytest.raises(WorkerExited, match="read sample 7 of batch 1") as caught:
        list(DataLoader(Stream(), 4, num_workers=1, transport=processes))
    assert caught.value.index == 7


class AtOnce(Fails):
    def __getitems__(self, indices):
        return [self[i] for i in indices]


# Sample 3 of each dataset fails.
WRAPPED = {
    "subset": lambda fails: Subset(fails, [0, 1, 2, 5, 3, 4]),
    "stack": lambda fails: StackDataset(range(6), Subset(fails, [0, 1, 2, 5, 3, 4])),
    "stack of stacks": lambda fails: StackDataset(StackDataset(Subset(fails, [0, 1, 2, 5, 3, 4]), range(6))),
    "subset of a stack": lambda fails: Subset(StackDataset(x=range(12), y=fails), [0, 1, 2, 5, 3, 4]),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_wrapped_datasets_name_the_sample(wrap, processes):
    for options in ({}, {"num_workers": 1, "transport": processes}):
        with pytest.raises(KeyError) as caught:
            list(DataLoader(wrap(Fails(raise_key_error)), 6, **options))
        assert any("reading sample 3 of batch 0" in note for note in caught.value.__notes__)
    with pytest.raises(WorkerExited, match="read sample 3 of batch 0") as exited:
        list(DataLoader(wrap(Fails(end_by_signal)), 6, num_workers=1, transport=processes))
    assert exited.value.index == 3


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_samples_that_are_read_at_once_are_not_named(wrap, processes):
    """The error names all samples of the batch."""
    for options in ({}, {"num_workers": 1, "transport": processes}):
        with pytest.raises(KeyError) as caught:
            list(DataLoader(wrap(AtOnce(raise_key_error)), 6, **options))
        expected = "reading batch 0 at once (samples 0, 1, 2, 3, 4, 5)"
        assert any(expected in note for note in caught.value.__notes__)
    with pytest.raises(
        WorkerExited, match=r"while it read batch 0 at once \(samples 0, 1, 2, 3, 4, 5\)\n"
    ) as exited:
        list(DataLoader(wrap(AtOnce(end_by_signal)), 6, num_workers=1, transport=processes))
    assert exited.value.index is None
    assert (exited.value.batch, exited.value.indices) == (0, [0, 1, 2, 3, 4, 5])


def test_all_samples_of_a_batch_that_crashes_at_once_are_named(processes):
    order = [(7 * i + 5) % 40 for i in range(40)]
    with pytest.raises(WorkerExited) as exited:
        sampler = order[20:] + order[:20]
        list(DataLoader(AtOnce(end_by_signal, 40), 20, sampler=sampler, num_workers=1, transport=processes))
    text = ", ".join(map(str, order[:20]))
    assert f"while it read batch 1 at once (samples {text})\n" in str(exited.value)
    assert (exited.value.batch, exited.value.indices) == (1, order[:20])
    assert exited.value.lost[-20:] == order[:20]  # the previous batch may be lost, too


def test_a_crash_of_getbatch_names_the_batch(processes):
    class Columns(Fails):
        def __getbatch__(self, indices):
            return [self[i] for i in indices]

    with pytest.raises(WorkerExited, match=r"while it read batch 2 at once \(samples 4, 5\)\n"):
        list(DataLoader(Columns(end_by_signal), 2, num_workers=1, transport=processes))


class NumbersAtOnce(Dataset):
    def __len__(self):
        return 6

    def __getitems__(self, indices):
        return indices


class NumberStream(IterableDataset):
    def __iter__(self):
        return iter(range(6))


@pytest.mark.parametrize(
    "dataset", [range(6), NumbersAtOnce(), NumberStream()], ids=["each", "at once", "stream"]
)
def test_a_crash_of_collate_fn_names_the_batch(dataset, processes):
    def collate(samples):
        if 3 in samples:
            end_by_signal()
        return samples

    with pytest.raises(WorkerExited, match=r"while it collated or sent batch 1 \(samples 2, 3\)\n") as exited:
        list(DataLoader(dataset, 2, num_workers=1, transport=processes, collate_fn=collate))
    assert (exited.value.batch, exited.value.index) == (1, None)


SPAWNED = """
    import os, sys
    from rushlight_data import DataLoader, Dataset, WorkerExited

    class Ends(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            if i == 5:
                os._exit(3)
            return i

    if __name__ == "__main__":
        loader = DataLoader(
            Ends(), 4, num_workers=1, transport=sys.argv[1], multiprocessing_context=sys.argv[2]
        )
        try:
            list(loader)
        except WorkerExited as error:
            print(error.index, "read sample 5 of batch 1" in str(error))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_crash_in_a_spawned_worker_names_the_sample(processes, run_script, method):
    assert run_script(SPAWNED, processes.name, method) == "5 True\n"


def test_crash_outside_of_a_sample_names_none(processes):
    def collate(samples):
        end_by_signal()

    with pytest.raises(WorkerExited) as caught:
        list(DataLoader(range(4), 4, num_workers=1, collate_fn=collate, transport=processes))
    assert caught.value.index is None
    assert "read sample" not in str(caught.value)


def test_timeout(processes, held):
    loader = DataLoader(Fails(lambda: time.sleep(100)), 2, num_workers=2, timeout=0.3, transport=processes)
    with pytest.raises(LoaderTimeout, match=r"within 0.3 seconds\n.*batch 2 \(samples 4, 5\)"):
        list(loader)
    assert held.children() == []


@pytest.mark.parametrize(
    ("left", "ahead"), [(None, 8), (2 << 30, 8), (100 << 20, 8), (13 << 20, 4), (9 << 20, 2), (1, 1)]
)
def test_fewer_batches_are_read_ahead_when_memory_is_short(processes, left, ahead):
    class Transport(type(processes)):
        def memory_left(self):
            return left

    class Large(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, i):
            return core.ones(1 << 19)

    loader = DataLoader(Large(), 1, num_workers=2, prefetch_factor=4, transport=Transport())
    counts = []
    iterator = iter(loader)
    # The size of a batch is not known yet.
    assert pending(iterator) == {None: 8, 2 << 30: 2}.get(left, 1)
    for _ in iterator:
        counts.append(pending(iterator))
    assert len(counts) == 40
    assert max(counts[10:30]) <= ahead
    if ahead > 1:
        assert max(counts[10:30]) >= min(ahead, 4)
    loader = DataLoader(core.ones(20, 1), 1, num_workers=2, prefetch_factor=4, transport=Transport())
    for _ in range(2):  # small batches always fit
        iterator = iter(loader)
        next(iterator)
        next(iterator)
        assert pending(iterator) + len(iterator._ready) == 8
        list(iterator)


def pending(iterator):
    return sum(len(worker.tasks) for worker in iterator._pool.workers)


def test_errors_of_the_loader_itself_are_not_those_of_a_worker(processes, monkeypatch):
    iterator = iter(DataLoader(Fails(lambda: None), 2, num_workers=1, transport=processes))
    connection = iterator._pool.workers[0].conn

    class Full:
        def recv(self):
            raise OSError(errno.EMFILE, "too many open files")

        def __getattr__(self, name):
            return getattr(connection, name)

    iterator._pool.workers[0].conn = Full()
    with pytest.raises(OSError, match="too many open files") as caught:
        list(iterator)
    assert not isinstance(caught.value, WorkerError)


def test_a_worker_that_dies_slowly_is_waited_for(processes, held, monkeypatch):
    """On an overloaded machine, a worker that was killed may take long to end."""
    monkeypatch.setattr("rushlight_data.worker_pool.STOP_SECONDS", 0.05)
    loader = DataLoader(Fails(lambda: time.sleep(100)), 2, num_workers=2, timeout=0.3, transport=processes)
    iterator = iter(loader)
    for worker in iterator._pool.workers:
        kill = worker.process.kill
        worker.process.kill = lambda kill=kill: threading.Timer(0.5, kill).start()
    with pytest.raises(LoaderTimeout):
        list(iterator)
    assert held.children() == []


def test_what_is_abandoned_leaves_nothing(transport, held):
    def once():
        loader = DataLoader(Fails(lambda: None), 2, num_workers=2, transport=transport)
        for _ in loader:
            break
        list(loader)
        persistent = DataLoader(
            Fails(lambda: None), 2, num_workers=2, transport=transport, persistent_workers=True
        )
        next(iter(persistent))
        next(iter(persistent))

    once()
    before = held.descriptors(), held.mappings()
    for _ in range(3):
        once()
    assert held.children() == []
    assert held.mappings() == before[1]
    assert held.descriptors() <= before[0]


def test_descriptors_grow_with_workers_not_with_batches(processes, held):
    loader = DataLoader(Fails(lambda: None), 1, num_workers=2, transport=processes)
    counts = []
    kept = []
    for batch in loader:
        kept.append(batch)
        counts.append(held.descriptors())
    assert max(counts[2:]) - counts[2] <= 2
    assert [batch[0, 0, 0].item() for batch in kept] == list(range(12))


class Recursive(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, i):
        return list(DataLoader(range(3), 1, num_workers=1))


def test_workers_within_workers_are_refused(processes):
    with pytest.raises(AssertionError, match="children"):
        list(DataLoader(Recursive(), num_workers=1, transport=processes))


UNPICKLABLE = """
    import multiprocessing, pickle, sys
    from functools import partial
    import rushlight_core as core
    from rushlight_data import DataLoader, Dataset

    class Refuses:
        def __reduce__(self):
            raise RuntimeError("as tensors with a graph do")

    class Transform:
        def __init__(self, fn):
            self.steps = {"first": [print, partial(map, fn)]}

    class Rows(Dataset):
        def __init__(self, transform):
            self.path = "here"
            self.transform = transform

        def __len__(self):
            return 4

        def __getitem__(self, i):
            return i

    def init(worker_id):
        pass

    if __name__ == "__main__":
        local = lambda sample: sample
        options = {"num_workers": 1, "transport": sys.argv[1], "multiprocessing_context": sys.argv[2]}
        context = multiprocessing.get_context(sys.argv[2])
        shared = [context.Lock(), context.Queue(), core.ones(2)]  # can be pickled while a process starts
        for dataset, further in (
            (Rows(Transform(local)), {}),
            (Rows(local), {}),
            (Rows(None), {"collate_fn": local}),
            (Rows([shared, {"t": Refuses()}]), {}),
            (Rows([shared, {1, local}]), {}),
            (Rows(None), {"worker_init_fn": Rows(open(sys.executable, "rb")).transform.read}),
        ):
            try:
                iter(DataLoader(dataset, **options, **further))
            except (AttributeError, RuntimeError, TypeError, pickle.PicklingError) as error:
                print(error.__notes__[-1].split(" = ")[0])
        iter(DataLoader(Rows(None), worker_init_fn=init, **options))  # nothing is added where nothing fails
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_cannot_be_pickled_is_named(processes, run_script, method):
    assert run_script(UNPICKLABLE, processes.name, method).splitlines() == [
        "DataLoader: dataset.transform.steps['first'][1].args[0]",
        "DataLoader: dataset.transform",
        "DataLoader: collate_fn",
        "DataLoader: dataset.transform[1]['t']",
        "DataLoader: dataset.transform[1] (an item)",
        "DataLoader: worker_init_fn",
    ]


class HoldsGenerators(Dataset):
    def __init__(self):
        self.plain = [1, 2]
        self.rngs = {"a": [np.random.RandomState(0), np.random.default_rng(0)]}
        self.own = core.Generator()
        self.other = Fails(random.Random(0))
        # The generators that the loader seeds, and a generator without a state.
        self.fine = [core.default_generator, np.random.mtrand._rand, random.SystemRandom()]

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return i


def test_generators_of_a_dataset_that_repeat_are_named_once(processes):
    loader = DataLoader(HoldsGenerators(), num_workers=2, transport=processes)
    with pytest.warns(UserWarning, match="worker_init_fn") as caught:
        assert [len(list(loader)) for _ in range(2)] == [4, 4]
    (warning,) = caught
    text = str(warning.message)
    for path in (
        "dataset.rngs['a'][0] (RandomState)",
        "dataset.rngs['a'][1] (Generator)",
        "dataset.own (Generator)",
        "dataset.other.what (Random)",
    ):
        assert path in text
    assert "fine" not in text
    assert warning.filename == __file__


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"num_workers": 2, "worker_init_fn": print}])
def test_generators_that_do_not_repeat_or_are_seeded(options, capfd, recwarn):
    list(DataLoader(HoldsGenerators(), **options))
    list(DataLoader([random.Random(0)] * 3, 3, num_workers=2, collate_fn=len))
    assert not recwarn.list


def test_break_returns_while_workers_read(processes, held):
    """All samples except the first take far longer than the test may take."""

    class Slow(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            if i > 1:
                time.sleep(1000)
            return i

    loader = DataLoader(Slow(), num_workers=2, transport=processes)
    for _ in loader:
        break
    del loader
    assert held.children() == []


def test_break_waits_once_for_all_threads_that_read():
    done = threading.Event()

    class Slow(Dataset):
        def __len__(self):
            return 80

        def __getitem__(self, i):
            if i:
                done.wait(60)
            return i

    iterator = iter(DataLoader(Slow(), num_workers=40, transport="threads", persistent_workers=False))
    next(iterator)
    begun = time.monotonic()
    del iterator
    waited = time.monotonic() - begun
    done.set()
    assert waited < 10  # 0.5 s for each worker would be 20 s
