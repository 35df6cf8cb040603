"""Suggestions for changes that follow from a recording. Each rule is a function, which applies only above a share of time
that makes a change worthwhile.

The shares are of the time that a thread's operators and nodes took, unless a rule states otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sized
from itertools import pairwise
from typing import NamedTuple

from rushlight_core.seams.profiler import DATA_WAIT, Argument, Header

from .events import EventList, FunctionEvent, format_memory, format_time, tensors_of

# Calls under this many microseconds that make a result under this many bytes cost more to dispatch than to
# compute.
TINY_TIME = 10.0
TINY_BYTES = 16 << 10
TINY_CALLS = 100
# Below this share (of 1) a finding is not worth a change of the program.
WORTH_IT = 0.1
# A recording shorter than this (microseconds) is too short to show how a program waits.
SHORTEST = 1000.0
# What recording one event costs between spans, in microseconds (measured); it is not held against the
# program.
OWN_COST = 0.15

COPIES = frozenset({"copy_", "clone", "contiguous", "to", "_to_copy", "type_as", "flatten_copy"})


class Advice(NamedTuple):
    """One suggestion of how a program could be faster.

    Attributes:
        share: the largest fraction of the time, from 0 to 1, that the change can save.
        time: the time of this share in microseconds.

    Example:
        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.ones(3) + 1
        >>> all(isinstance(advice, Advice) for advice in prof.advice())
        True
    """

    rule: str
    title: str
    text: str
    time: float
    share: float

    def __str__(self) -> str:
        return f"{self.title} ({100 * self.share:.0f} %, {format_time(self.time)})\n    {self.text}"


class AdviceList(list[Advice]):
    """A list of suggestions, which prints as text.

    Example:
        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.ones(3) + 1
        >>> isinstance(prof.advice(), AdviceList)
        True
    """

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "Nothing stands out."


class _View(NamedTuple):
    header: Header
    events: EventList
    operators: list[FunctionEvent]
    busy: float  # microseconds in operators and nodes, on all threads


Rule = Callable[[_View], Iterator[Advice]]


def give_advice(header: Header, events: EventList) -> AdviceList:
    """Return the suggestions of all rules, the greatest share first."""
    operators = [event for event in events if event.kind == "operator"]
    busy = sum(event.self_cpu_time_total for event in events if event.kind != "annotation")
    view = _View(header, events, operators, busy)
    found = [advice for rule in RULES for advice in rule(view)]
    return AdviceList(sorted(found, key=lambda advice: -advice.share))


def _tiny_operators(view: _View) -> Iterator[Advice]:
    groups: dict[str, list[FunctionEvent]] = defaultdict(list)
    for event in view.operators:
        if event.self_cpu_time_total < TINY_TIME and event.nbytes < TINY_BYTES:
            groups[event.name].append(event)
    for name, events in groups.items():
        time = sum(event.self_cpu_time_total for event in events)
        if len(events) >= TINY_CALLS and view.busy and time / view.busy >= WORTH_IT:
            mean = format_time(time / len(events))
            size = format_memory(sum(event.nbytes for event in events) / len(events))
            yield Advice(
                "tiny operators",
                f"Many tiny calls of {name}",
                f"{len(events)} calls of {mean}, each for a result of {size}{_where(events)}: dispatch "
                "costs as "
                "much as the work. Do many at once, on one larger tensor (stack, cat, a batch dimension, a "
                "broadcast), or use an operator that fuses them.",
                time,
                time / view.busy,
            )


def _copies(view: _View) -> Iterator[Advice]:
    copies = [event for event in view.operators if event.name in COPIES and not _inside(event, COPIES)]
    casts = [event for event in copies if len({tensor.dtype for tensor in _both_sides(event)}) > 1]
    changed = {event.id for event in casts}
    plain = [event for event in copies if event.id not in changed]
    for rule, title, events, hint in (
        (
            "casts",
            "Time goes into changing dtypes",
            casts,
            "Make tensors in the dtype in which they are used.",
        ),
        (
            "copies",
            "Time goes into copies",
            plain,
            "Views (view, expand, select, narrow) move nothing; in-place operators and out= write where the "
            "result is wanted; contiguous() on what is transposed moves everything: transpose later, or not at all.",
        ),
    ):
        time = sum(event.cpu_time_total for event in events)
        if view.busy and time / view.busy >= WORTH_IT and time >= SHORTEST / 10:
            moved = format_memory(sum(event.nbytes for event in events))
            text = f"{_calls(events)} moved {moved}{_where(events)}. {hint}"
            yield Advice(rule, title, text, time, time / view.busy)


def _waiting_for_data(view: _View) -> Iterator[Advice]:
    waits = [event for event in view.events if event.kind == "annotation" and event.name == DATA_WAIT]
    time = sum(event.cpu_time_total for event in waits)
    whole = view.header.duration / 1e3
    if waits and whole >= SHORTEST and time / whole >= WORTH_IT:
        longest = max(event.cpu_time_total for event in waits)
        yield Advice(
            "waiting for data",
            "The program waits for its data",
            f"{len(waits)} batches were waited for, the longest {format_time(longest)}. Give the DataLoader "
            "more workers (num_workers), let them work further ahead (prefetch_factor, persistent_workers), "
            "or "
            "do less for each sample. The share is of the whole time.",
            time,
            time / whole,
        )


def _between_operators(view: _View) -> Iterator[Advice]:
    """Report the time on the thread with the most operators that is neither in an operator nor spent waiting."""
    outermost: dict[int, list[FunctionEvent]] = defaultdict(list)
    for event in view.events:
        counts = event.kind != "annotation" or event.name == DATA_WAIT
        if counts and not _inside_any(event):
            outermost[event.thread].append(event)
    if not outermost:
        return
    events = max(outermost.values(), key=lambda spans: sum(span.cpu_time_total for span in spans))
    whole = events[-1].time_range.end - events[0].time_range.start
    spent = sum(event.cpu_time_total for event in events)
    inside = sum(1 for event in view.events if event.thread == events[0].thread)
    time = whole - spent - OWN_COST * inside
    if len(events) > 1 and whole >= SHORTEST and time / whole >= 0.5:
        before, after = max(
            pairwise(events), key=lambda pair: pair[1].time_range.start - pair[0].time_range.end
        )
        longest = format_time(after.time_range.start - before.time_range.end)
        yield Advice(
            "between operators",
            "Most time passes outside of operators",
            f"{_calls(events)} took {format_time(spent)} of {format_time(whole)}; the rest is Python, or "
            "work "
            f"that is not done here (NumPy, files, other libraries). The longest gap, {longest}, lies "
            "between "
            f"{before.name} and {after.name}. Look there with a profiler of Python; vectorise loops over "
            "elements.",
            time,
            time / whole,
        )


def _double_precision(view: _View) -> Iterator[Advice]:
    wide = [
        event
        for event in view.operators
        if any(tensor.dtype in ("float64", "complex128") for tensor in tensors_of(event.arguments))
    ]
    time = sum(event.self_cpu_time_total for event in wide)
    if view.busy and time / view.busy >= 0.2 and time >= SHORTEST / 10:
        yield Advice(
            "double precision",
            "Much is computed in float64",
            f"{_calls(wide)}{_where(wide)}. float32 moves half the bytes and computes twice as many "
            "numbers at once. "
            "NumPy's arrays are float64 unless told otherwise: convert them when they come in.",
            time / 2,
            time / 2 / view.busy,
        )


def _dropped(view: _View) -> Iterator[Advice]:
    dropped = view.header.dropped
    if dropped:
        share = dropped / (dropped + len(view.events))
        yield Advice(
            "missing events",
            "The recording is not complete",
            f"{dropped} events found their thread's buffer full. Record less at a time (schedule), or give "
            "profile(buffer_events=...) a larger number. The share is of the events.",
            0.0,
            share,
        )


RULES: tuple[Rule, ...] = (
    _dropped,
    _waiting_for_data,
    _between_operators,
    _tiny_operators,
    _copies,
    _double_precision,
)


def _both_sides(event: FunctionEvent) -> list[Argument]:
    """Return the tensors that a copy reads and writes, as far as they were recorded."""
    found = list(tensors_of(event.arguments))
    for child in event.cpu_children:
        found += tensors_of(child.arguments) if child.name in COPIES else []
    return found


def _inside(event: FunctionEvent, names: frozenset[str]) -> bool:
    around = event.cpu_parent
    while around is not None:
        if around.name in names:
            return True
        around = around.cpu_parent
    return False


def _inside_any(event: FunctionEvent) -> bool:
    around = event.cpu_parent
    while around is not None:
        if around.kind != "annotation" or around.name == DATA_WAIT:
            return True
        around = around.cpu_parent
    return False


def _calls(events: Sized) -> str:
    return "1 call" if len(events) == 1 else f"{len(events)} calls"


def _where(events: list[FunctionEvent]) -> str:
    """Return the place where most of the time was spent: the line if stacks were recorded, otherwise the enclosing span."""
    times: dict[str, float] = defaultdict(float)
    for event in events:
        if event.stack:
            times[f"at {event.stack[0]}"] += event.cpu_time_total
        elif event.cpu_parent is not None:
            times[f"in {event.cpu_parent.name}"] += event.cpu_time_total
    if not times:
        return ""
    return f", most of it {max(times, key=lambda place: times[place])}"
