"""Workers that are kept between epochs, and batches that they read before the next epoch begins."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import socket
import threading

import pytest

import rushlight_core as core
from rushlight_data import (
    BatchSampler,
    BucketBatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    PermutationSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TokenBatchSampler,
    WeightedRandomSampler,
    default_collate,
)

N = 12


class Rows(Dataset):
    """Sample i contains the state of the dataset. Each read writes its index to a pipe, as one byte."""

    def __init__(self, pipe=None):
        self.pipe = pipe
        self.scale = 1
        self.table = core.zeros(N)
        self.lock = None

    def __len__(self):
        return N

    def __getitem__(self, i):
        if self.pipe is not None:
            os.write(self.pipe, bytes([i]))
        return i * self.scale + self.table[i].item(), os.getpid(), core.rand(()).item()


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def epoch(loader):
    batches = list(loader)
    return [value for batch in batches for value in batch[0].tolist()], {
        pid for batch in batches for pid in batch[1].tolist()
    }


def count_reads(pipe, count):
    """Wait for `count` reads and return the indices."""
    got = b""
    while len(got) < count:
        got += os.read(pipe[0], count - len(got))
    return list(got)


def test_workers_are_kept_and_read_ahead_of_the_next_epoch(processes, pipe):
    loader = DataLoader(Rows(pipe[1]), 2, num_workers=2, transport=processes)
    values, pids = epoch(loader)
    assert sorted(count_reads(pipe, N)) == list(range(N))
    assert sorted(count_reads(pipe, 8)) == list(range(8))  # 4 batches of the next epoch
    assert epoch(loader) == (values, pids)
    assert sorted(count_reads(pipe, N - 8)) == list(range(8, N))  # nothing was read again
    assert loader.state_dict()["epoch"] == 2


def change_attribute(loader):
    loader.dataset.scale = 10
    return [10.0 * i for i in range(N)]


def change_in_place(loader):
    loader.dataset.table += 100
    return [i + 100.0 for i in range(N)]


def change_collation(loader):
    loader.collate_fn = lambda samples: default_collate([(-v, pid, r) for v, pid, r in samples])
    return [-float(i) for i in range(N)]


def change_what_collation_uses(loader):
    loader.collate_fn.shift = 5
    return [i + 5.0 for i in range(N)]


class Collate:
    shift = 0

    def __call__(self, samples):
        return default_collate([(value + self.shift, pid, r) for value, pid, r in samples])


@pytest.mark.parametrize(
    "change", [change_attribute, change_in_place, change_collation, change_what_collation_uses]
)
@pytest.mark.parametrize("persistent", [None, True])
def test_changes_reach_the_workers(processes, change, persistent):
    loader = DataLoader(
        Rows(), 2, num_workers=2, transport=processes, collate_fn=Collate(), persistent_workers=persistent
    )
    assert epoch(loader)[0] == [float(i) for i in range(N)]
    expected = change(loader)
    assert epoch(loader)[0] == expected
    assert epoch(loader)[0] == expected


def test_change_in_the_middle_of_an_epoch_reaches_the_next(processes):
    loader = DataLoader(Rows(), 2, num_workers=2, transport=processes)
    for _ in loader:
        loader.dataset.scale = 3
        break
    assert epoch(loader)[0] == [3.0 * i for i in range(N)]


def test_set_epoch_drops_what_was_read_early(processes, pipe):
    sampler = DistributedSampler(range(N), num_replicas=1, rank=0)
    loader = DataLoader(Rows(pipe[1]), 2, sampler=sampler, num_workers=2, transport=processes)
    orders = []
    for number in range(3):
        sampler.set_epoch(number)
        values, pids = epoch(loader)
        count_reads(pipe, N)
        count_reads(pipe, 8)  # batches of the epoch that would begin without set_epoch
        orders.append((values, list(sampler), pids))
    assert all(values == order for values, order, _ in orders)
    assert orders[0][2] == orders[1][2]  # the workers themselves are kept
    assert orders[0][1] != orders[1][1]


def samplers():
    data = range(N)
    return {
        "sequential": lambda: SequentialSampler(data),
        "random": lambda: RandomSampler(data),
        "own generator": lambda: RandomSampler(data, generator=core.Generator().manual_seed(3)),
        "replacement": lambda: RandomSampler(data, replacement=True),
        "subset": lambda: SubsetRandomSampler([3, 1, 5, 7]),
        "weighted": lambda: WeightedRandomSampler([1.0] * N, N),
        "permutation": lambda: PermutationSampler(data),
        "list": lambda: [4, 2, 6],
        "iterator": lambda: iter([4, 2, 6]),  # can be read only once
    }


@pytest.mark.parametrize("name", samplers())
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("between", [False, True])
def test_epochs_are_those_without_workers(name, seed, between):
    def epochs(num_workers):
        core.manual_seed(1)
        loader = DataLoader(
            Rows(),
            batch_sampler=BatchSampler(samplers()[name](), 2, False),
            seed=seed,
            num_workers=num_workers,
        )
        result = []
        for _ in range(3):
            result.append([(batch[0].tolist(), batch[2].tolist()) for batch in loader])
            if between:
                result.append(core.rand(1).item())
        return result, core.rand(1).item()

    assert epochs(2) == epochs(0)


@pytest.mark.parametrize(
    "make", [lambda: BucketBatchSampler([*range(N)], 4), lambda: TokenBatchSampler([*range(N)], 30)]
)
def test_batches_by_length_are_those_without_workers(make):
    def epochs(num_workers):
        core.manual_seed(1)
        loader = DataLoader(Rows(), batch_sampler=make(), num_workers=num_workers)
        assert len(list(loader)) == len(loader)
        return [batch[0].tolist() for _ in range(3) for batch in loader], loader

    expected, _ = epochs(0)
    found, loader = epochs(2)
    assert found == expected
    assert loader._pool.early is not None


@pytest.mark.parametrize("shuffle", [False, True])
def test_exact_resume_beside_early_batches(processes, shuffle):
    def make(num_workers):
        options = {"num_workers": num_workers, "transport": processes} if num_workers else {}
        return DataLoader(Rows(), 2, shuffle=shuffle, generator=core.Generator().manual_seed(1), **options)

    def rest(loader):
        return [(batch[0].tolist(), batch[2].tolist()) for batch in loader]

    loader = make(2)
    rest(loader)
    between = loader.state_dict()
    iterator = iter(loader)
    next(iterator)
    within = loader.state_dict()
    expected_within = rest(iterator)
    after = loader.state_dict()
    for state, expected in ((within, expected_within), (after, None), (between, None)):
        other = make(0)
        other.load_state_dict(state)
        expected = expected or rest(other)
        loader.load_state_dict(state)  # batches of another epoch have been read early
        assert rest(loader) == expected


class FromFile(Rows):
    def __init__(self, pipe, path):
        super().__init__(pipe)
        self.path = path

    def __getitem__(self, i):
        text = self.read()
        os.write(self.pipe, bytes([i]))
        return text

    def read(self):
        with open(self.path) as file:
            return file.read()


class FromOpenFile(FromFile):
    file = None

    def read(self):
        if self.file is None:
            self.file = open(self.path)  # noqa: SIM115  it stays open, and later reads open nothing
        self.file.seek(0)
        return self.file.read()


class FromElsewhere(FromFile):
    """Reads data that file signatures do not cover; opening a socket indicates this."""

    def read(self):
        socket.socket().close()
        return os.pread(self.path, 1, 0).decode()


class FromStatus(FromFile):
    """Reads the status of files, for which Python calls no audit hook."""

    def read(self):
        folder = self.path.parent
        size = os.path.getsize(os.fsencode(self.path))
        return size, os.path.exists(folder / "new"), os.readlink(folder / "link")


def test_status_of_files_that_changes_between_epochs_is_read_again(processes, tmp_path, pipe):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("a")
    link.symlink_to("nowhere")
    dataset = FromStatus(pipe[1], path)
    loader = DataLoader(dataset, 3, num_workers=2, transport=processes, collate_fn=list)

    def change_size():
        path.write_text("aa")

    def create():
        (tmp_path / "new").touch()

    def replace_link():
        link.unlink()
        link.symlink_to("elsewhere")

    list(loader)
    for change in (change_size, create, replace_link):
        count_reads(pipe, N)
        change()
        assert list(loader) == [[dataset.read()] * 3] * 4
        count_reads(pipe, N)


@pytest.mark.parametrize("kind", [FromFile, FromOpenFile, FromElsewhere])
@pytest.mark.parametrize("replaced", [False, True])
def test_files_that_change_between_epochs_are_read_again(kind, replaced, tmp_path, pipe):
    path = tmp_path / "file"
    path.write_text("a")
    descriptor = os.open(path, os.O_RDONLY)
    loader = DataLoader(kind(pipe[1], descriptor if kind is FromElsewhere else path), 3, num_workers=2)
    assert [batch[0] for batch in loader] == ["a"] * 4
    count_reads(pipe, 2 * N)  # all samples of this epoch and of the next one
    if replaced and kind is FromFile:
        other = tmp_path / "other"
        other.write_text("b")
        other.replace(path)
    else:
        path.write_text("b")
    assert [batch[0] for batch in loader] == ["b"] * 4
    os.close(descriptor)


def test_what_may_change_unseen_has_new_workers(processes, pipe):
    dataset = Rows(pipe[1])
    dataset.lock = threading.Lock()  # an object whose state cannot be compared
    loader = DataLoader(dataset, 2, num_workers=2, transport=processes)
    first, second = epoch(loader), epoch(loader)
    assert first[0] == second[0]
    assert not first[1] & second[1]
    kept = DataLoader(dataset, 2, num_workers=2, transport=processes, persistent_workers=True)
    assert epoch(kept)[1] == epoch(kept)[1]
    count_reads(pipe, 4 * N)
    assert not _readable(pipe[0])  # nothing was read early


def _readable(descriptor):
    import select

    return bool(select.select([descriptor], [], [], 0)[0])


class Counted(IterableDataset):
    epochs = 0

    def __iter__(self):
        self.epochs += 1
        yield self.epochs, os.getpid(), 0.0


@pytest.mark.parametrize("options", [{"persistent_workers": False}, {"streams": None}])
def test_workers_that_are_not_kept(options):
    loader = DataLoader(Rows(), 2, num_workers=2, **options)
    assert not epoch(loader)[1] & epoch(loader)[1]
    assert loader.persistent_workers is (options.get("persistent_workers") is None)


def test_streams_begin_anew_unless_workers_are_asked_for():
    assert [epoch(loader)[0] for loader in [DataLoader(Counted(), num_workers=1)] for _ in range(2)] == [
        [1],
        [1],
    ]
    kept = DataLoader(Counted(), num_workers=1, persistent_workers=True)
    assert [epoch(kept)[0] for _ in range(2)] == [[1], [2]]


def test_worker_that_was_killed_between_epochs_is_replaced(processes, held):
    loader = DataLoader(Rows(), 2, num_workers=2, transport=processes)
    values, pids = epoch(loader)
    for worker in loader._pool.workers:
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.join(50)
    again, others = epoch(loader)
    assert again == values
    assert not others & pids
    del loader
    assert held.children() == []


def test_a_forked_child_starts_workers_of_its_own(transport):
    loader = DataLoader(Rows(), 2, num_workers=1, transport=transport)
    values, pids = epoch(loader)
    iterator = iter(loader)

    def read():
        with pytest.raises(RuntimeError, match="belong to the parent process"):
            next(iterator)
        assert epoch(loader)[0] == values

    child = multiprocessing.get_context("fork").Process(target=read)
    child.start()
    child.join()
    assert child.exitcode == 0
    assert len(list(iterator)) == N // 2
    assert epoch(loader) == (values, pids)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))]
)
def test_a_copy_starts_workers_of_its_own(processes, duplicate):
    loader = DataLoader(Rows(), 2, shuffle=True, num_workers=1, transport=processes, seed=0)
    _, pids = epoch(loader)
    copied = duplicate(loader)
    assert copied.state_dict() == loader.state_dict()
    values, others = epoch(copied)
    assert epoch(loader) == (values, pids)
    assert not others & pids


def test_several_iterators_have_workers_of_their_own(processes, held):
    loader = DataLoader(Rows(), 2, num_workers=1, transport=processes)
    first = iter(loader)
    next(first)
    second = iter(loader)
    next(second)
    assert len(held.children()) == 2
    assert len(list(second)) == len(list(first)) == 5
    assert len(held.children()) == 1
    assert len(list(loader)) == 6


def test_nothing_is_read_early_where_memory_is_short(processes, pipe):
    class Large(Rows):
        def __getitem__(self, i):
            os.write(self.pipe, bytes([i]))
            return core.ones(1 << 18)

    class Transport(type(processes)):
        def memory_left(self):
            return 3 << 20

    loader = DataLoader(Large(pipe[1]), 1, num_workers=2, transport=Transport())
    for _ in range(2):
        assert len(list(loader)) == N
    count_reads(pipe, 2 * N)
    assert loader._pool.early is None
    loader = DataLoader(Large(pipe[1]), 1, num_workers=2, transport=processes)
    assert len(list(loader)) == N
    assert loader._pool.early is not None


def test_list_of_batches_that_changes_in_place(processes, pipe):
    batches = [[0, 1], [2, 3]]
    loader = DataLoader(Rows(pipe[1]), batch_sampler=batches, num_workers=1, transport=processes)
    assert epoch(loader)[0] == [0, 1, 2, 3]
    count_reads(pipe, 8)  # both epochs
    batches[0][0] = 5
    assert epoch(loader)[0] == [5, 1, 2, 3]


class Proxy:
    """An object whose class and attributes cannot be read, like a proxy without a target."""

    @property
    def __class__(self):
        raise RuntimeError("no object is bound")

    def __getattr__(self, name):
        raise RuntimeError("no object is bound")


def test_objects_that_cannot_be_inspected(processes):
    dataset = Rows()
    dataset.proxy = Proxy()
    loader = DataLoader(dataset, 2, num_workers=2, transport=processes)
    assert epoch(loader)[0] == epoch(loader)[0] == list(range(N))
