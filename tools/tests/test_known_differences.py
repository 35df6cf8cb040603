"""The table of known differences: what an entry covers, and which keys it may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from known_differences import Known, covered, read


@dataclass
class Found:
    op: str = "add.out"
    kind: str = "values"
    dtype: str = "float32"
    sample: str = "t(3), 1"
    text: str = "1, not 2"


NAMES = {"add.out", "add"}


@pytest.mark.parametrize(
    ("entry", "covers"),
    [
        (Known("add.out", "values", "why"), True),
        (Known("add", "values", "why", dtype="float32", sample="t(3)", text="not 2"), True),
        (Known("add", "values", "why", mode="jvp"), True),
        (Known("sub", "values", "why"), False),
        (Known("add", "dtype", "why"), False),
        (Known("add", "values", "why", dtype="float"), False),
        (Known("add", "values", "why", sample="t(4)"), False),
        (Known("add", "values", "why", text="not 3"), False),
        (Known("add", "values", "why", mode="vmap"), False),
        (Known("add", "values", "why", pattern=r"\b\d, not [2-4]$"), True),
        (Known("add", "values", "why", pattern=r"\d, not [3-4]"), False),
    ],
)
def test_an_entry_covers_what_it_names(entry: Known, covers: bool) -> None:
    assert entry.covers(Found(), NAMES, mode="jvp") is covers


def test_what_a_difference_does_not_have_is_empty() -> None:
    class Bare:
        kind = "values"

    assert Known("add", "values", "why").covers(Bare(), NAMES)
    assert not Known("add", "values", "why", text="1").covers(Bare(), NAMES)


def test_all_entries_that_cover_are_counted() -> None:
    table = [Known("add", "values", "why"), Known("add.out", "values", "why"), Known("sub", "values", "why")]
    assert covered(table, Found(), NAMES)
    assert covered(table, Found(), NAMES)
    assert not covered(table, Found(kind="dtype"), NAMES)
    assert [entry.met for entry in table] == [2, 2, 0]


def test_an_entry_of_several_operators_and_kinds() -> None:
    table = read([{"op": ["add", "sub"], "kind": ["values", "dtype"], "reason": "why"}], ["values", "dtype"])
    assert [(e.op, e.kind) for e in table] == [
        ("add", "values"), ("add", "dtype"), ("sub", "values"), ("sub", "dtype"),
    ]  # fmt: skip
    assert read(None, ["values"]) == []


@pytest.mark.parametrize(
    "more",
    [{"kind": "colour"}, {"reason": " "}, {"mode": "sideways"}, {"dtpye": "float32"}, {"met": 3}],
)
def test_an_entry_says_what_and_why(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="add"):
        read([{"op": "add", "kind": "values", "reason": "why", **more}], ["values"], ["jvp"])
