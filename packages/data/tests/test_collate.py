"""Collation, by PyTorch's rules."""

from __future__ import annotations

import collections
from typing import NamedTuple

import numpy as np
import pytest

import rushlight_core as core
from rushlight_data import collate, default_collate, default_collate_fn_map, default_convert
from rushlight_data.collate import allocate_batches_by


class Point(NamedTuple):
    x: object
    y: object


@pytest.mark.parametrize(
    ("batch", "expected", "dtype"),
    [
        ([1, 2], [1, 2], core.int64),
        ([True, False], [True, False], core.bool),
        ([1.5, 2], [1.5, 2], core.float64),
        ([np.float32(1), np.float32(2)], [1, 2], core.float32),
        ([np.int16(1), np.int16(2)], [1, 2], core.int16),
        ([np.ones(2, dtype=np.uint8)] * 2, [[1, 1], [1, 1]], core.uint8),
        ([core.ones(2), core.zeros(2)], [[1, 1], [0, 0]], core.float32),
    ],
)
def test_numbers_and_arrays(batch, expected, dtype):
    got = default_collate(batch)
    assert got.dtype == dtype
    assert got.tolist() == expected


def test_strings_stay():
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]


def test_structures():
    got = default_collate(
        [{"p": Point(1, "a"), "l": [1.0, (2, 3)]}, {"p": Point(2, "b"), "l": [4.0, (5, 6)]}]
    )
    assert got["p"].x.tolist() == [1, 2]
    assert list(got["p"].y) == ["a", "b"]
    assert type(got["l"]) is list
    assert got["l"][0].tolist() == [1, 4]
    assert [t.tolist() for t in got["l"][1]] == [[2, 5], [3, 6]]
    assert type(default_collate([(1, 2), (3, 4)])) is list


def test_mappings_keep_their_kind():
    defaults = collections.defaultdict(list, a=1)
    got = default_collate([defaults, {"a": 2}])
    assert type(got) is collections.defaultdict
    assert got["a"].tolist() == [1, 2]
    assert got["new"] == []
    assert type(default_collate([collections.OrderedDict(a=1)])) is collections.OrderedDict


class Row(collections.UserList):
    pass


def test_sequences_keep_their_kind():
    got = default_collate([Row([1, 2]), Row([3, 4])])
    assert type(got) is Row
    assert [t.tolist() for t in got] == [[1, 3], [2, 4]]
    assert [t.tolist() for t in default_collate([range(2), range(2)])] == [[0, 0], [1, 1]]


def test_what_does_not_fit_together():
    with pytest.raises(RuntimeError, match="sample 0 has 2 items, sample 1 has 1"):
        default_collate([[1, 2], [3]])
    with pytest.raises(RuntimeError):
        default_collate([core.ones(2), core.ones(3)])
    with pytest.raises(TypeError, match="collate_fn"):
        default_collate([object()])
    for array in (np.array(["a"]), np.array([object()])):
        with pytest.raises(TypeError, match="dtype"):
            default_collate([array])


def test_further_types():
    class Word:
        def __init__(self, text):
            self.text = text

    class Longer(Word):
        pass

    def join(batch, *, collate_fn_map):
        assert collate_fn_map[Word] is join
        return " ".join(word.text for word in batch)

    assert collate([{"w": Word("a")}, {"w": Longer("b")}], collate_fn_map={Word: join}) == {"w": "a b"}
    assert collate([Longer("a")], collate_fn_map={Word: join}) == "a"
    default_collate_fn_map[Word] = join
    try:
        assert default_collate([(Word("a"), 1), (Word("b"), 2)])[0] == "a b"
    finally:
        del default_collate_fn_map[Word]


def test_convert():
    got = default_convert(
        {"a": np.ones(2), "b": [np.float64(1), "s"], "c": (1, None), "p": Point(np.zeros(1), 2)}
    )
    assert got["a"].tolist() == [1, 1]
    assert got["b"][0].item() == 1
    assert got["b"][1] == "s"
    assert got["c"] == [1, None]
    assert got["p"].x.tolist() == [0]
    assert default_convert(np.array(["x"]))[0] == "x"
    t = core.ones(1)
    assert default_convert(t) is t


def test_batches_are_written_into_the_memory_that_is_offered():
    offered = []

    def allocate(size, dtype):
        offered.append(core.empty(tuple(size), dtype=dtype))
        return offered[-1]

    allocate_batches_by(allocate)
    try:
        got = default_collate([core.ones(2, 3), core.zeros(2, 3)])
        assert got is offered[0] or got.data_ptr() == offered[0].data_ptr()
        assert got[0].tolist() == [[1, 1, 1]] * 2
        # If the offered memory does not fit, the batch is collated as usual, with the usual result or error.
        assert default_collate([core.ones(2), core.ones(2, dtype=core.float64)]).dtype == core.float64
        with pytest.raises(RuntimeError):
            default_collate([core.ones(2), core.ones(3)])
        assert default_collate([core.ones(2, requires_grad=True)]).tolist() == [[1, 1]]
        assert len(offered) == 1
    finally:
        allocate_batches_by(None)
