"""Snapshots detect every change, and report if they could not detect one."""

from __future__ import annotations

import collections
import functools
import random
import threading
import types

import numpy as np
import pytest

import rushlight_core as core
from rushlight_data import TensorDataset
from rushlight_data.snapshot import Snapshot

SCALE = 2
helper = types.ModuleType("helper_of_the_user")
helper.offset = 3


class Slotted:
    __slots__ = ("value",)


class Rows:
    factor = 1
    shared: list[int] = []

    def __init__(self):
        self.path = "here"
        self.samples = [("a.png", 0), ("b.png", 1)]
        self.nested = {"key": [{"deep": [1]}], "set": {1}}
        self.tensor = core.arange(6.0)
        self.half = core.ones(3, dtype=core.bfloat16)
        self.array = np.arange(6)
        self.generator = core.Generator()
        self.rng = random.Random(0)
        self.rows = np.random.default_rng(0)
        self.slotted = Slotted()
        self.slotted.value = [1]
        self.queue = collections.deque([1, 2])
        self.counts = collections.Counter("ab")
        self.transform = self.make(4)
        self.partial = functools.partial(max, [1], key=len)
        self.itself = self

    def make(self, number):
        return lambda x: x + number

    def __getitem__(self, i):
        return i * SCALE * self.factor + helper.offset


def change_cell(rows):
    rows.transform.__closure__[0].cell_contents = 5


CHANGES = {
    "attribute": lambda r: setattr(r, "path", "there"),
    "new attribute": lambda r: setattr(r, "new", None),
    "deleted attribute": lambda r: delattr(r, "path"),
    "list item": lambda r: r.samples.__setitem__(0, ("c.png", 0)),
    "list order": lambda r: r.samples.reverse(),
    "list length": lambda r: r.samples.append(("d.png", 1)),
    "deep list": lambda r: r.nested["key"][0]["deep"].append(2),
    "dict key": lambda r: r.nested.update(new=1),
    "set": lambda r: r.nested["set"].add(2),
    "tensor": lambda r: r.tensor.add_(1),
    "memory of a tensor": lambda r: r.tensor.numpy().__setitem__(2, 9),
    "tensor of bfloat16": lambda r: r.half.zero_(),
    "array": lambda r: r.array.__setitem__(0, 7),
    "shape of an array": lambda r: setattr(r.array, "shape", (2, 3)),
    "generator": lambda r: core.rand(1, generator=r.generator),
    "random.Random": lambda r: r.rng.random(),
    "NumPy generator": lambda r: r.rows.random(),
    "slot": lambda r: r.slotted.value.append(1),
    "deque": lambda r: r.queue.rotate(),
    "counter": lambda r: r.counts.update("a"),
    "closure": change_cell,
    "partial": lambda r: r.partial.args[0].append(2),
    "function": lambda r: setattr(r, "transform", r.make(4)),
    "class attribute": lambda r: setattr(Rows, "factor", 5),
    "list of the class": lambda r: Rows.shared.append(1),
    "method": lambda r: setattr(Rows, "make", len),
    "global": lambda r: globals().__setitem__("SCALE", 7),
    "attribute of a module": lambda r: setattr(helper, "offset", 9),
}


@pytest.mark.parametrize("what", CHANGES)
def test_change_is_noticed(what, monkeypatch):
    for where, name, value in (
        (Rows, "factor", 1),
        (Rows, "shared", []),
        (Rows, "make", Rows.make),
        (helper, "offset", 3),
    ):
        monkeypatch.setattr(where, name, value)
    monkeypatch.setitem(globals(), "SCALE", 2)
    rows = Rows()
    snapshot = Snapshot(rows)
    assert snapshot.known
    assert not snapshot.changed()
    CHANGES[what](rows)
    assert snapshot.changed()


def test_reading_changes_nothing():
    rows = Rows()
    snapshot = Snapshot(rows, rows.make, TensorDataset(core.ones(3)), np.float32(1))
    assert rows[1] == 5
    assert snapshot.known
    assert not snapshot.changed()


@pytest.mark.parametrize(
    "what",
    [
        threading.Lock(),
        threading.local(),
        (i for i in range(3)),
        np.array([[1], None], dtype=object),
        core.zeros(5 << 20),
        [{} for _ in range(20_000)],
        list(range(2_000_000)),
        core.ones(3).to_sparse(),
    ],
    ids=["lock", "local", "iterator", "array of objects", "large", "many", "long", "sparse"],
)
def test_what_is_not_known(what):
    assert not Snapshot({"here": [what]}).known


def test_open_file_is_not_known(tmp_path):
    with open(tmp_path / "file", "w") as file:
        assert not Snapshot([file]).known


def test_read_only_arrays_of_any_size_are_known(tmp_path):
    array = np.zeros(20 << 20, np.uint8)
    np.save(tmp_path / "array.npy", array)
    array.flags.writeable = False
    assert Snapshot(array, np.load(tmp_path / "array.npy", mmap_mode="r")).known
    writable = np.zeros(20 << 20, np.uint8)
    view = writable[:]
    view.flags.writeable = False
    assert not Snapshot(view).known


def test_subclass_that_hides_its_items():
    class Lazy(list):
        def __iter__(self):
            return iter([1])

    assert not Snapshot(Lazy()).known
