"""The comparison of results: what counts as a difference, and which entries its table may have."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import compare_results
import numpy as np
import pytest
from compare_results import KINDS, Comparison, Difference, Peer, sort_out
from known_differences import read

ADD = Difference("add.out", "values", "float32", "t(3), 1", "1, not 2")


def test_what_no_longer_differs_is_found() -> None:
    table = read([{"op": ["add", "sub"], "kind": "values", "reason": "why"}], KINDS)
    # The name of an operator covers all of its overloads.
    left, stale = sort_out([ADD, Difference("mul", "dtype", "int64", "", "")], table)
    assert [d.op for d in left] == ["mul"]
    assert [entry.op for entry in stale] == ["sub"]
    assert sort_out([], read([{"op": "a", "kind": "crash", "reason": "why"}], KINDS)) == ([], [])


def test_the_table_can_be_read() -> None:
    yaml = pytest.importorskip("yaml")
    assert read(yaml.safe_load(compare_results.MEANT.read_text()), KINDS)


# --- a library of one operator, over NumPy ---


class Array:
    """A tensor with the attributes that the comparison uses."""

    requires_grad = False

    def __init__(self, data: Any, dtype: str = "float32") -> None:
        self.data, self.dtype = np.asarray(data, dtype), np.dtype(dtype).name
        self.shape = self.data.shape

    def numel(self) -> int:
        return self.data.size

    def detach(self) -> Array:
        return self

    def double(self) -> Array:
        return Array(self.data, "float64")

    def numpy(self, force: bool = False) -> Any:
        return self.data


@dataclass
class Op:
    name: str = "twice"
    base: str = "twice"
    doc: str = ""
    random: bool = False
    differentiable: bool = False
    is_inplace: bool = False
    variants: frozenset[str] = frozenset({"function"})
    samples: list[Any] = field(default_factory=lambda: [SimpleNamespace(text="t(2)")])
    errors: list[Any] = field(default_factory=list)
    schema: Any = field(default_factory=lambda: SimpleNamespace(arguments=[]))


def compared(ours: Any, theirs: Any, op: Op | None = None) -> set[tuple[str, str]]:
    empty = SimpleNamespace()
    peers = [
        Peer(SimpleNamespace(twice=ours), False),
        Peer(
            SimpleNamespace(
                twice=theirs, nn=SimpleNamespace(functional=empty), _C=SimpleNamespace(_nn=empty)
            ),
            True,
        ),
    ]

    def samples(text: str, library: Any, dtype: str) -> list[Any]:
        name = "float32" if dtype == "bfloat16" else dtype
        return [SimpleNamespace(text=text, args=(Array([1, 2], name),), kwargs={})]

    found = Comparison(op or Op(), *peers, samples, []).differences()
    return {(d.kind, d.dtype) for d in found}


def twice(x: Array) -> Array:
    return Array(x.data * 2, x.dtype)


def raising(kind: type[Exception]) -> Any:
    def function(x: Array) -> Array:
        raise kind("no")

    return function


def test_the_same_is_no_difference() -> None:
    assert compared(twice, twice) == set()
    assert compared(raising(ValueError), raising(RuntimeError)) == set()  # of a sample, not of an error


def test_values_shapes_and_dtypes() -> None:
    assert ("values", "float32") in compared(lambda x: Array(x.data * 3, x.dtype), twice)
    assert ("shape", "int64") in compared(lambda x: Array(x.data[:1], x.dtype), twice)
    assert ("dtype", "int64") in compared(lambda x: Array(x.data * 2, "float64"), twice)
    assert ("values", "float64") not in compared(lambda x: Array(x.data * 2 * (1 + 1e-12), x.dtype), twice)
    assert compared(lambda x: Array(x.data * 3, x.dtype), twice, Op(doc="Uninitialised.")) == set()


def test_half_precision_may_be_nearer_to_float64() -> None:
    def rounded(x: Array) -> Array:
        return Array(x.data * (3 if x.dtype == "float16" else 2), x.dtype)

    assert compared(twice, rounded) == set()
    assert compared(rounded, twice) == {("values", "float16")}
    # An in-place operator overwrites its arguments.
    assert compared(twice, rounded, Op(is_inplace=True)) == {("values", "float16")}


def test_who_raises() -> None:
    assert ("raises", "int64") in compared(raising(ValueError), twice)
    # If only PyTorch refuses a call, this is a difference only in the dtype of the sample itself.
    assert compared(twice, raising(ValueError)) == {("raises", "float32")}
    errors = Op(samples=[], errors=[SimpleNamespace(text="t(2)")])
    assert compared(raising(IndexError), raising(ValueError), errors) == {("error", "float32")}
    assert compared(raising(NotImplementedError), raising(RuntimeError), errors) == set()
    assert compared(twice, raising(ValueError), errors) == {("raises", "float32")}


def test_hidden_operators_have_no_counterpart() -> None:
    assert Peer(SimpleNamespace(twice=twice), False).function(Op(variants=frozenset({"hidden"}))) is None
