"""Datasets that draw no random numbers are read without seeding the streams, and the results are the same."""

from __future__ import annotations

import copy
import pickle
import random
import struct

import numpy as np
import pytest

import rushlight_core as core
from rushlight_data import DataLoader, Dataset
from rushlight_data import quiet as quiet_module
from rushlight_data.quiet import memory_of_numpy, memory_of_random

DRAWS = {
    "random": random.random,
    "gauss": lambda: random.gauss(0, 1),
    "numpy": lambda: float(np.random.rand()),
    "normal": lambda: float(np.random.randn()),
    "core": lambda: core.rand(()).item(),
    "seeded": lambda: random.seed(3) or 0.0,
}


class Sometimes(Dataset):
    """A dataset whose samples from `first` on draw a number with one of the functions `DRAWS`."""

    def __init__(self, what, first):
        self.what = what
        self.first = first
        self.read = []

    def __len__(self):
        return 16

    def __getitem__(self, i):
        self.read.append(i)
        return DRAWS[self.what]() if i >= self.first else float(i)


def epoch(loader):
    """Return the batches, and the numbers that the program draws between them."""
    random.seed(1), np.random.seed(1), core.manual_seed(1)
    random.gauss(0, 1), np.random.randn()  # both generators cache a second Gaussian for the next call
    seen = []
    for batch in loader:
        seen.append((batch.tolist(), random.random(), np.random.rand(), core.rand(()).item()))
    return seen


def seeding_loader(*args, **options):
    """Return a loader that seeds the streams for each batch."""
    loader = DataLoader(*args, **options)
    loader._quiet.quiet = False
    return loader


def test_the_memory_of_the_generators():
    for seed in (0, 5):
        random.seed(seed)
        for _ in range(700 * seed):
            random.random()
        _, state, _ = random.getstate()
        assert bytes(memory_of_random()) == struct.pack("=i624I", state[-1], *state[:-1])
    generator = np.random.MT19937(3)
    memory = memory_of_numpy(generator)
    before = bytes(memory)
    generator.random_raw()
    assert bytes(memory) != before


@pytest.mark.parametrize("first", [0, 5, 15, 16])
@pytest.mark.parametrize("what", DRAWS)
def test_batches_and_the_programs_numbers_are_the_same(what, first):
    loader = DataLoader(Sometimes(what, first), 4, seed=3)
    for _ in range(2):
        seeded = seeding_loader(Sometimes(what, first), 4, seed=3)
        seeded._epoch = loader._epoch
        assert epoch(loader) == epoch(seeded)


@pytest.mark.parametrize("what", ["random", "gauss", "numpy", "normal"])
def test_a_draw_ends_the_quiet(what):
    dataset = Sometimes(what, 9)
    loader = DataLoader(dataset, 4, seed=3)
    iterator = iter(loader)
    next(iterator), next(iterator)
    assert loader._quiet.quiet
    next(iterator)
    assert not loader._quiet.quiet
    assert dataset.read == [*range(12), *range(8, 12)]  # the first batch with a draw is read twice
    list(iterator), list(loader)
    assert dataset.read[16:] == [*range(12, 16), *range(16)]


def test_a_dataset_that_draws_at_once_is_not_read_twice():
    dataset = Sometimes("random", 0)
    list(DataLoader(dataset, 4, seed=3))
    assert dataset.read == list(range(16))


def test_core_alone_is_no_reason_to_seed():
    loader = DataLoader(Sometimes("core", 0), 4, seed=3)
    list(loader)
    assert loader._quiet.quiet


class Failing(Sometimes):
    def __getitem__(self, i):
        value = super().__getitem__(i)
        if i == 10:
            raise KeyError(value)
        return value


@pytest.mark.parametrize(("first", "read"), [(16, list(range(11))), (9, [*range(11), *range(8, 11)])])
def test_an_exception_is_raised_with_the_seeded_numbers(first, read):
    def failure(make):
        random.seed(4)
        with pytest.raises(KeyError) as error:
            list(make(dataset, 4, seed=3))
        assert any("reading sample 10" in note for note in error.value.__notes__)
        return error.value.args, random.random()

    dataset = Failing("random", first)
    expected = failure(seeding_loader)
    dataset.read.clear()
    assert failure(DataLoader) == expected
    assert dataset.read == read


def test_other_modes_seed_always():
    for options in ({"streams": "sample"}, {"streams": None}):
        loader = DataLoader(Sometimes("core", 16), 4, seed=3, **options)
        list(loader)
        assert loader._quiet.quiet is None


def test_without_a_known_layout_streams_are_seeded(monkeypatch):
    monkeypatch.setattr(quiet_module, "memory_of_random", lambda: None)
    loader = DataLoader(Sometimes("random", 5), 4, seed=3)
    monkeypatch.undo()
    assert epoch(loader) == epoch(seeding_loader(Sometimes("random", 5), 4, seed=3))
    assert loader._quiet.quiet is False
    monkeypatch.setattr(quiet_module, "memory_of_numpy", lambda generator: None)
    loader = DataLoader(Sometimes("numpy", 5), 4, seed=3)
    assert epoch(loader) == epoch(seeding_loader(Sometimes("numpy", 5), 4, seed=3))
    assert loader._quiet.quiet is False


def test_loaders_are_copied_and_pickled():
    loader = DataLoader(Sometimes("random", 16), 4, seed=3)
    first = epoch(loader)
    for other in (copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
        other._epoch = 0
        assert epoch(other) == first


def test_a_dataset_that_imports_numpy(run_script):
    program = """
    import random, sys
    import rushlight_core as core
    from rushlight_data import DataLoader, Dataset

    class Lazy(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            if i < first:
                return 0.0
            import numpy
            return float(numpy.random.rand())

    first = int(sys.argv[2])
    loader = DataLoader(Lazy(), 2, seed=1)
    loader._quiet.quiet = False if sys.argv[1] == "seeded" else loader._quiet.quiet
    batches = [batch.tolist() for batch in loader]
    # Nothing has seeded NumPy for the batch that imports it.
    print([batch for number, batch in enumerate(batches) if number != first // 2])
    """
    for first in ("0", "5"):
        assert run_script(program, "seeded", first) == run_script(program, "quiet", first)
