"""Snapshots detect every change, and report if they could not detect one."""

from __future__ import annotations

import collections
import decimal
import functools
import importlib
import os
import random
import threading
import types
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_data import TensorDataset
from rushlight_data.snapshot import Snapshot

SCALE = 2
helper = types.ModuleType("helper_of_the_user")
helper.offset = 3
helper.inner = types.ModuleType("helper_of_the_user.inner")
helper.inner.limit = 1


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
        return i * SCALE * self.factor + helper.offset * helper.inner.limit


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
    "attribute of a module in a module": lambda r: setattr(helper.inner, "limit", 9),
}


@pytest.mark.parametrize("what", CHANGES)
def test_change_is_noticed(what, monkeypatch):
    for where, name, value in (
        (Rows, "factor", 1),
        (Rows, "shared", []),
        (Rows, "make", Rows.make),
        (helper, "offset", 3),
        (helper.inner, "limit", 1),
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


SETTINGS = {
    "environment": lambda patch: patch.setenv("VARIABLE_OF_THIS_TEST", "1"),
    "working directory": lambda patch: patch.chdir("/"),
    "default dtype": lambda patch: core.set_default_dtype(core.float64),
    "default device": lambda patch: core.set_default_device("meta"),
    "decimal context": lambda patch: patch.setattr(decimal.getcontext(), "prec", 3),
}


@pytest.mark.parametrize("what", SETTINGS)
def test_change_of_the_process_is_noticed(what, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    snapshot = Snapshot(Rows())
    assert not snapshot.changed()
    try:
        SETTINGS[what](monkeypatch)
        assert snapshot.changed()
    finally:
        core.set_default_dtype(core.float32)
        core.set_default_device(None)


def test_flags_of_a_decimal_context_do_not_count():
    decimal.getcontext().clear_flags()
    snapshot = Snapshot(Rows())
    assert decimal.Decimal(1) / 3 < 1  # sets the flag Inexact
    assert not snapshot.changed()


def test_working_directory_that_was_deleted(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert not Snapshot(Rows()).changed()


def test_attributes_of_libraries_are_compared(monkeypatch):
    monkeypatch.setattr(core, "limits_of_this_test", [1], raising=False)
    monkeypatch.setattr(os.path, "value_of_this_test", 1, raising=False)

    def by_name():
        return core.limits_of_this_test, os.path.value_of_this_test

    for change in (
        lambda: core.limits_of_this_test.append(2),
        lambda: setattr(core, "limits_of_this_test", [1]),
        lambda: setattr(os.path, "value_of_this_test", 2),
    ):
        snapshot = Snapshot(by_name)
        assert snapshot.known
        assert not snapshot.changed()
        change()
        assert snapshot.changed()


def functions_that_use_others():
    """Return functions that use globals which their code does not name."""
    module = helper

    class Holder:
        backend = module

    def nested():
        return [eval("SCALE") for _ in range(2)]

    def imports():
        import test_sampler

        return test_sampler.N

    return {
        "eval": lambda: eval("SCALE"),
        "exec": lambda: exec("SCALE"),
        "globals": lambda: globals()["SCALE"],
        "import_module": lambda: importlib.import_module("helper_of_the_user").offset,
        "getattr": lambda: getattr(helper, "off" + "set"),
        "getattr with a module in a module": lambda: getattr(helper.inner, "lim" + "it"),
        "getattr with a module of an enclosing function": lambda: getattr(module, "off" + "set"),
        "vars": lambda: vars(helper)["offset"],
        "another name": lambda: [m.offset for m in (helper,)],
        "module in an object": lambda: Holder.backend.offset,
        "nested": nested,
        "imports": imports,
    }


@pytest.mark.parametrize("what", functions_that_use_others())
def test_code_that_may_use_any_global_is_not_known(what):
    function = functions_that_use_others()[what]
    state = [1]
    snapshot = Snapshot(function, state)
    assert not snapshot.known
    assert not snapshot.changed()


def test_state_beside_such_code_is_compared():
    state = [1]
    snapshot = Snapshot(lambda: eval("SCALE"), state)
    state.append(2)
    assert snapshot.changed()


def test_code_that_names_all_that_it_uses_is_known():
    module = helper
    number = 2

    class Holder:
        def eval(self):
            return getattr(self, "num" + "ber", 0)

    def imports():
        import numpy.linalg

        return numpy.linalg.norm([number])

    def later():
        return undefined  # noqa: F821

    for function in (
        lambda: module.offset + Holder().eval() + len(vars(Holder())),
        lambda: [helper.inner.limit for _ in range(number)],
        lambda: sum(np.random.rand() for _ in range(2)),
        imports,
        later,
    ):
        assert Snapshot(function).known


def test_variable_of_an_enclosing_function_that_is_a_module(monkeypatch):
    monkeypatch.setattr(helper, "offset", 3)
    module = helper
    snapshot = Snapshot(lambda: [module.offset for _ in range(2)])
    assert snapshot.known
    helper.offset = 4
    assert snapshot.changed()


def test_an_object_may_hold_a_library() -> None:
    class Holder:
        def __init__(self) -> None:
            self.library = core

        def __getitem__(self, i: int) -> Any:
            return self.library.tensor(i)

    assert Snapshot(Holder()).known
