"""Datasets: the sample at an index, and combinations of datasets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rushlight_core as core
from rushlight_data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
)  # fmt: skip
from rushlight_data.dataset import batch_method


class Squares(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i * i


class Stream(IterableDataset):
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)


def test_bases_say_what_is_missing():
    with pytest.raises(NotImplementedError, match="__getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())


def test_tensor_dataset():
    x, y = core.arange(6.0).reshape(3, 2), core.tensor([5, 6, 7])
    dataset = TensorDataset(x, y)
    assert len(dataset) == 3
    assert [t.tolist() for t in dataset[1]] == [[2, 3], 6]
    assert dataset.tensors[0] is x
    with pytest.raises(AssertionError, match=r"same first dimension.*\[3, 2\]"):
        TensorDataset(x, y[:2])


@pytest.mark.parametrize("indices", [[0], [2, 0, 2], [-1, 1]])
def test_batch_of_tensor_dataset_is_what_collation_gives(indices):
    dataset = TensorDataset(
        core.arange(12.0).reshape(3, 2, 2), core.tensor([True, False, True]), core.arange(3)
    )
    batch = dataset.__getbatch__(indices)
    expected = default_collate([dataset[i] for i in indices])
    assert type(batch) is type(expected)
    for a, b in zip(batch, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()


def test_short_cut_is_not_taken_past_a_subclass():
    class Negated(TensorDataset):
        def __getitem__(self, i):
            return tuple(-t for t in super().__getitem__(i))

    plain, negated = TensorDataset(core.ones(3)), Negated(core.ones(3))
    assert batch_method(plain) is not None
    assert batch_method(negated) is None
    assert batch_method(Subset(plain, [0])) is not None
    assert batch_method(Subset(negated, [0])) is None
    assert batch_method(Squares(3)) is None


def test_concat():
    dataset = Squares(2) + Squares(3) + Squares(1)
    assert isinstance(dataset, ConcatDataset)
    assert [dataset[i] for i in range(len(dataset))] == [0, 1, 0, 1, 4, 0]
    assert dataset[-2] == 4
    assert dataset.cumulative_sizes == [5, 6]
    for i, error in ((6, IndexError), (-7, ValueError)):
        with pytest.raises(error, match=f"index {i} is out of range for length 6"):
            dataset[i]
    with pytest.raises(ValueError, match="at least one"):
        ConcatDataset([])
    with pytest.raises(TypeError, match="ChainDataset"):
        ConcatDataset([Stream(1)])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_concat_of_any_lengths(lengths):
    parts = [[(i, j) for j in range(n)] for i, n in enumerate(lengths)]
    dataset = ConcatDataset(parts)
    flat = [item for part in parts for item in part]
    assert [dataset[i] for i in range(len(dataset))] == flat
    assert [dataset[i] for i in range(-len(dataset), 0)] == flat
    with pytest.raises(IndexError):
        dataset[len(dataset)]
    with pytest.raises(ValueError, match="out of range"):
        dataset[-len(dataset) - 1]


def test_chain():
    dataset = Stream(1, 2) + Stream(3)
    assert list(dataset) == [1, 2, 3]
    assert len(dataset) == 3
    with pytest.raises(TypeError, match="Squares is not an IterableDataset"):
        list(ChainDataset([Squares(2)]))


def test_stack():
    side_by_side = StackDataset(Squares(3), ["a", "b", "c"])
    assert side_by_side[2] == (4, "c")
    assert side_by_side.__getitems__([0, 2]) == [(0, "a"), (4, "c")]
    named = StackDataset(x=Squares(2), y=[True, False])
    assert named[1] == {"x": 1, "y": False}
    assert named.__getitems__([1]) == [{"x": 1, "y": False}]
    assert len(named) == 2
    with pytest.raises(ValueError, match="same length"):
        StackDataset(Squares(3), Squares(2))
    for args, kwargs in (((), {}), ((Squares(1),), {"x": Squares(1)})):
        with pytest.raises(ValueError, match="either"):
            StackDataset(*args, **kwargs)


def test_subset():
    subset = Subset(Squares(10), [3, 1, 4])
    assert [subset[i] for i in range(3)] == [9, 1, 16]
    assert subset.__getitems__([2, 0]) == [16, 9]
    assert len(subset) == 3
    assert Subset(subset, [2])[0] == 16


@given(st.integers(1, 60), st.data())
def test_random_split_by_lengths(n, data):
    cut = data.draw(st.integers(0, n))
    parts = random_split(range(n), [cut, n - cut], generator=core.Generator().manual_seed(3))
    assert [len(part) for part in parts] == [cut, n - cut]
    assert sorted(part[i] for part in parts for i in range(len(part))) == list(range(n))
    again = random_split(range(n), [cut, n - cut], generator=core.Generator().manual_seed(3))
    assert [part.indices for part in parts] == [part.indices for part in again]


def test_random_split_by_fractions():
    assert [len(part) for part in random_split(range(10), [0.3, 0.3, 0.4])] == [3, 3, 4]
    assert [len(part) for part in random_split(range(11), [0.5, 0.5])] == [6, 5]
    assert [len(part) for part in random_split(range(4), [0.34, 0.33, 0.33])] == [2, 1, 1]
    assert [len(part) for part in random_split(range(19), [0.2, 0.5, 0.3])] == [
        4,
        10,
        5,
    ]  # two remaining samples are distributed
    with pytest.raises(ValueError, match="add up"):
        random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match="between 0 and 1"):
        random_split(range(10), [-0.5, 1.5])
