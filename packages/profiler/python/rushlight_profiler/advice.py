"""Suggestions for changes to a program, which are derived from a recording.

Each rule is a function that yields a suggestion only if a change could save a large enough share of the time.
Shares are relative to the time in operators and nodes on all threads, unless a rule states otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sized
from itertools import pairwise
from typing import NamedTuple

from rushlight_core.seams.profiler import DATA_WAIT, Argument, Header

from .events import EventList, FunctionEvent, format_memory, format_time, tensors_of

# A call is tiny if it takes less than TINY_TIME microseconds and its result has fewer than TINY_BYTES bytes. Its
# dispatch takes longer than its computation.
TINY_TIME = 10.0
TINY_BYTES = 16 << 10
TINY_CALLS = 100
# The smallest share of the time (a fraction of 1) that is worth a change of the program.
WORTH_IT = 0.1
# In a recording shorter than this (microseconds), waiting times are not meaningful.
SHORTEST = 1000.0
# The time in microseconds that recording one event adds between spans, as measured. It is subtracted from the time
# of the program.
OWN_COST = 0.15

COPIES = frozenset({"copy_", "clone", "contiguous", "to", "_to_copy", "type_as", "flatten_copy"})


class Advice(NamedTuple):
    """A suggestion to make a program faster.

    Attributes:
        share: the largest fraction of the time, from 0 to 1, that the change can save.
        time: the longest time that the change can save, in microseconds.

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
    """A list of suggestions. `print` shows the list as text.

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
    busy: float  # time in operators and nodes on all threads, in microseconds


Rule = Callable[[_View], Iterator[Advice]]


def give_advice(header: Header, events: EventList) -> AdviceList:
    """Return the suggestions of all rules. The suggestion with the largest `share` comes first."""
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
                f"{len(events)} calls took {mean} on average, each with a result of {size}{_where(events)}. Dispatch "
                "takes as long as the computation. Combine many calls into one call on a larger tensor (stack, cat, "
                "a batch dimension, broadcasting), or use an operator that fuses them.",
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
            "Time is spent on conversions of dtypes",
            casts,
            "Create tensors in the dtype in which they are used.",
        ),
        (
            "copies",
            "Time is spent on copies",
            plain,
            "Views (view, expand, select, narrow) copy nothing. In-place operators and out= write results directly "
            "to their destination. contiguous() of a transposed tensor copies it: transpose later, or not at all.",
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
            f"The program waited for {len(waits)} batches, at most {format_time(longest)} for one. Use more workers in "
            "the DataLoader (num_workers), let them load further ahead (prefetch_factor, persistent_workers), or "
            "do less work for each sample. The share is relative to the whole time.",
            time,
            time / whole,
        )


def _between_operators(view: _View) -> Iterator[Advice]:
    """Report the time that the busiest thread spends neither in operators nor in waiting for data."""
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
            f"{_calls(events)} took {format_time(spent)} of {format_time(whole)}; the rest is Python "
            f"code and other libraries (NumPy, files). The longest gap, {longest}, is between {before.name} and "
            f"{after.name}. Use a Python profiler to see what runs there; vectorize loops over elements.",
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
            "Many operators compute in float64",
            f"{_calls(wide)}{_where(wide)}. float32 needs half the memory, and vector instructions process twice as "
            "many numbers. NumPy arrays are float64 by default: convert them when you create tensors from them.",
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
            f"{dropped} events were dropped because a thread's buffer was full. Record fewer steps at a time "
            "(schedule), or pass a larger profile(buffer_events=...). The share is relative to the events.",
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
    """Return the recorded tensor arguments of an operator that copies, and of the copies that it calls."""
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
    """Return the end of a sentence that names where `events` took the most time, or "" if this is not known.

    The place is a source line, as in ", most of it at model.py:3", or the enclosing span if no stacks were
    recorded."""
    times: dict[str, float] = defaultdict(float)
    for event in events:
        if event.stack:
            times[f"at {event.stack[0]}"] += event.cpu_time_total
        elif event.cpu_parent is not None:
            times[f"in {event.cpu_parent.name}"] += event.cpu_time_total
    if not times:
        return ""
    return f", most of it {max(times, key=lambda location: times[location])}"
