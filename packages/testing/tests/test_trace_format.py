"""The check of traces reports each kind of error in a trace."""

from __future__ import annotations

import json

import pytest

from rushlight_testing.trace_format import trace_problems

PLACE = {"pid": 1, "tid": 2}
OUTER = {"ph": "X", "name": "outer", "ts": 1.0, "dur": 10.0, **PLACE}
INNER = {"ph": "X", "name": "inner", "ts": 2.5, "dur": 8.5, **PLACE}
START = {"ph": "s", "name": "arrow", "cat": "c", "id": 1, "ts": 1.0, **PLACE}
END = {"ph": "f", "bp": "e", "name": "arrow", "cat": "c", "id": 1, "ts": 3.0, **PLACE}
COUNTER = {"ph": "C", "name": "memory", "ts": 0, "args": {"bytes": 5}, **PLACE}
NAME = {"ph": "M", "name": "process_name", "args": {"name": "python"}, **PLACE}
RIGHT = [NAME, OUTER, INNER, START, END, COUNTER, {"ph": "i", "s": "g", "name": "now", "ts": 3, **PLACE}]


def problems(*entries: object) -> str:
    return "\n".join(trace_problems(json.dumps({"traceEvents": entries})))


def without(entry: dict, field: str) -> dict:
    return {key: value for key, value in entry.items() if key != field}


def test_a_right_trace():
    assert problems(*RIGHT) == ""
    assert trace_problems(json.dumps(RIGHT)) == []  # a list without an enclosing object is a trace too


@pytest.mark.parametrize("field", ["ph", "pid", "tid", "ts", "dur", "name"])
def test_a_slice_needs_each_field(field):
    assert len(trace_problems(json.dumps([without(OUTER, field)]))) == 1


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (OUTER | {"dur": -1}, "dur is -1"),
        (OUTER | {"ts": "1"}, "ts is '1'"),
        (OUTER | {"tid": 1.5}, "tid is 1.5"),
        (OUTER | {"ph": "B"}, "phase 'B' is unknown"),
        (OUTER | {"args": []}, "args is not an object"),
        (COUNTER | {"args": {"bytes": "5"}}, "shows numbers"),
        (NAME | {"args": {}}, "args.name must be str"),
        (NAME | {"name": "colour"}, "no such metadata"),
        ({"ph": "i", "s": "x", "name": "now", "ts": 3, **PLACE}, "scope 'x'"),
        (7, "not an object"),
    ],
)
def test_entries_by_themselves(entry, said):
    assert said in problems(entry)


def test_slices_that_cross():
    assert "ends 1000 ns after it" in problems(OUTER, INNER | {"dur": 9.5})
    assert problems(OUTER, INNER | {"dur": 9.5, "tid": 3}) == ""
    assert problems(OUTER, INNER | {"ts": 11.0}) == ""  # the events do not overlap


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([START], "1 starts and 0 ends"),
        ([START, END, END], "1 starts and 2 ends"),
        ([START, END | {"cat": "d"}], "0 starts and 1 ends"),
        ([START | {"ts": 4}, END], "ends before it starts"),
        ([START, without(END, "bp")], "without bp=e"),
        ([START, END | {"ts": 12}], "its end lies in no slice"),
        ([START | {"tid": 9}, END], "its start lies in no slice"),
        ([without(START, "cat"), END], "no category"),
    ],
)
def test_flows(entries, said):
    assert said in problems(OUTER, *entries)


def test_what_is_no_trace():
    assert trace_problems("[1,") != []
    assert trace_problems("{}") == ["no list of traceEvents"]
    assert "NaN" in trace_problems('[{"ts": NaN}]')[0]
