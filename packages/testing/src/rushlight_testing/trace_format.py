"""Check that a trace follows Chrome's Trace Event Format, as viewers such as Perfetto require.

The rules are from "Trace Event Format", Google, 2016. For cases that this document does not define, the rules follow
Perfetto's importer.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

Entry = dict[str, Any]

_METADATA = {
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def trace_problems(text: str) -> list[str]:
    """Return a list with one line for each problem of the Chrome trace `text`. The list is empty if the trace is valid.

    The trace must be JSON without NaN, and each event must have the fields that its phase requires. Complete events (`X`) of
    one thread must nest. A flow must have one start (`s`) and one end (`f`) that is not earlier, and both
    must lie within complete events. Counters and metadata are checked, too. Phases that rushlight's traces
    do not use (`B`, `E`, async events and samples) are reported as unknown.
    """
    try:
        trace = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        return [f"not JSON: {error}"]
    entries = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(entries, list):
        return ["no list of traceEvents"]
    problems: list[str] = []
    right = [entry for number, entry in enumerate(entries) if not _report(entry, number, problems)]
    problems += _nesting(right)
    problems += _flows(right)
    return problems


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a number in JSON")


def _report(entry: Any, number: int, problems: list[str]) -> bool:
    """Add the problems of a single entry to the list, and return whether there are any."""
    if not isinstance(entry, dict):
        problems.append(f"entry {number} is not an object: {entry!r}")
        return True
    found = list(_entry(entry))
    problems += [f"entry {number} ({entry.get('ph')} {entry.get('name')!r}): {what}" for what in found]
    return bool(found)


def _entry(entry: Entry) -> Iterable[str]:
    for field in ("pid", "tid"):
        if type(entry.get(field)) is not int:
            yield f"{field} is {entry.get(field)!r}, not an integer"
    if not isinstance(entry.get("name"), str):
        yield "no name"
    if not isinstance(entry.get("args", {}), dict):
        yield "args is not an object"
    phase = entry.get("ph")
    if phase not in _PHASES:
        yield f"phase {phase!r} is unknown"
        return
    if phase != "M" and not _is_time(entry.get("ts")):
        yield f"ts is {entry.get('ts')!r}, not a time in microseconds"
    yield from _PHASES[phase](entry)


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def _complete(entry: Entry) -> Iterable[str]:
    if not _is_time(entry.get("dur")):
        yield f"dur is {entry.get('dur')!r}, not a time in microseconds"


def _instant(entry: Entry) -> Iterable[str]:
    if entry.get("s", "t") not in ("g", "p", "t"):
        yield f"scope {entry['s']!r} is none of g, p, t"


def _counter(entry: Entry) -> Iterable[str]:
    values = entry.get("args") or {}
    if not values or not all(type(value) in (int, float) for value in values.values()):
        yield f"a counter shows numbers, not {values!r}"


def _flow(entry: Entry) -> Iterable[str]:
    if type(entry.get("id")) not in (int, str):
        yield f"id is {entry.get('id')!r}"
    if not isinstance(entry.get("cat"), str):
        yield "no category: flows are matched by it"


def _metadata(entry: Entry) -> Iterable[str]:
    field, kind = _METADATA.get(entry["name"], ("", object))
    if not field:
        yield "no such metadata"
    elif type(entry.get("args", {}).get(field)) is not kind:
        yield f"args.{field} must be {kind.__name__}"


_PHASES: dict[str, Callable[[Entry], Iterable[str]]] = {
    "X": _complete,
    "i": _instant,
    "C": _counter,
    "M": _metadata,
    "s": _flow,
    "f": _flow,
}


# --- entries together ---------------------------------------------------------------------------------------


def _nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)


def _span(entry: Entry) -> tuple[int, int]:
    begin = _nanoseconds(entry["ts"])
    return begin, begin + _nanoseconds(entry["dur"])


def _slices(entries: list[Entry]) -> dict[tuple[int, int], list[Entry]]:
    """Return the complete events (phase "X") of each thread, with outer events before those inside them."""
    threads: dict[tuple[int, int], list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry["ph"] == "X":
            threads[entry["pid"], entry["tid"]].append(entry)
    for found in threads.values():
        found.sort(key=lambda entry: (_span(entry)[0], -_span(entry)[1]))
    return threads


def _nesting(entries: list[Entry]) -> Iterable[str]:
    for (_, thread), slices in _slices(entries).items():
        around: list[Entry] = []
        for entry in slices:
            begin, end = _span(entry)
            while around and _span(around[-1])[1] <= begin:
                around.pop()
            if around and end > _span(around[-1])[1]:
                yield (
                    f"thread {thread}: {entry['name']!r} begins inside of {around[-1]['name']!r}"
                    f" and ends {end - _span(around[-1])[1]} ns after it"
                )
            around.append(entry)


def _flows(entries: list[Entry]) -> Iterable[str]:
    ends: dict[tuple[Any, ...], dict[str, list[Entry]]] = defaultdict(lambda: {"s": [], "f": []})
    for entry in entries:
        if entry["ph"] in "sf":
            ends[entry["cat"], entry["name"], entry["id"]][entry["ph"]].append(entry)
    slices = _slices(entries)
    for key, pair in ends.items():
        if [len(found) for found in pair.values()] != [1, 1]:
            yield f"flow {key}: {len(pair['s'])} starts and {len(pair['f'])} ends, not one of each"
            continue
        (start,), (end,) = pair.values()
        if start["ts"] > end["ts"]:
            yield f"flow {key}: ends before it starts"
        if end.get("bp") != "e":
            yield f"flow {key}: without bp=e it leads to the next slice, not to the one around its end"
        for name, entry in (("start", start), ("end", end)):
            time = _nanoseconds(entry["ts"])
            around = (_span(found) for found in slices.get((entry["pid"], entry["tid"]), ()))
            if not any(first <= time <= last for first, last in around):
                yield f"flow {key}: its {name} lies in no slice"
