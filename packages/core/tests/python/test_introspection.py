"""Operators by name, boxed calls, memory statistics."""

from __future__ import annotations

import pytest

import rushlight_core as core


def test_every_operator_is_listed_with_its_schema() -> None:
    table = core._C._operators()
    names = [name for name, _ in table]
    assert names == sorted(names)
    schemas = dict(table)
    assert schemas["add"] == "add(TensorOrScalar input, TensorOrScalar other, *, Scalar alpha=1) -> Tensor"
    assert schemas["add.out"].endswith("Tensor(w!) out) -> Tensor")
    assert all(schema.startswith(name + "(") for name, schema in table)


def test_boxed_calls_give_what_typed_calls_give() -> None:
    t = core.arange(6.0).view(2, 3)
    assert core._C._call_boxed("add", t, 2, 3).tolist() == core.add(t, 2, alpha=3).tolist()
    assert core._C._call_boxed("view", t, (3, 2)).shape == (3, 2)
    assert core._C._call_boxed("view", t, 6).shape == (6,)
    assert len(core._C._call_boxed("split", t, 1, 0)) == 2
    target = core.zeros(2, 3)
    assert core._C._call_boxed("copy_", target, t, False) is target
    assert target.tolist() == t.tolist()


def test_bad_boxed_calls_are_named() -> None:
    t = core.ones(2)
    with pytest.raises(RuntimeError, match="no operator 'nothing'"):
        core._C._call_boxed("nothing")
    with pytest.raises(TypeError, match="got 1 arguments, a boxed call needs all 3"):
        core._C._call_boxed("add", t)
    with pytest.raises(TypeError, match="argument 'other' must be TensorOrScalar, not str"):
        core._C._call_boxed("add", t, "x", 1)
    with pytest.raises(TypeError, match="name must be a str"):
        core._C._call_boxed(3)


def test_memory_statistics() -> None:
    before = core.memory_stats()["allocated_bytes"]
    t = core.zeros(1 << 20)
    held = core.memory_stats()
    assert held["allocated_bytes"] - before >= 4 << 20
    assert held["allocated_bytes_peak"] >= held["allocated_bytes"]
    assert held["reserved_bytes"] >= held["allocated_bytes"]
    del t
    assert core.memory_stats()["allocated_bytes"] <= before
    core.empty_cache()
    core.reset_peak_memory_stats()
    assert core.memory_stats()["allocated_bytes_peak"] < held["allocated_bytes_peak"]
    assert core.memory_snapshot().startswith(("{", "["))
