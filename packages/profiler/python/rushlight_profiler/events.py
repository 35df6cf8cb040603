"""Recorded events with PyTorch's interface: a tree of events, and averages over groups of events.

Times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rushlight_core.seams.profiler import Argument, Event

from .flops import CONVOLUTIONS, flops_of

Shapes = list[list[Any]]


class Interval:
    """A time interval, in microseconds since the profile began.

    Attributes:
        start: the beginning.
        end: the end.

    Example:
        >>> Interval(10.0, 25.0).elapsed_us()
        15.0
    """

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start: float = start
        self.end: float = end

    def elapsed_us(self) -> float:
        """Return the length of the interval."""
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start:.3f}, end={self.end:.3f})"


def format_time(us: float) -> str:
    """Return a time as text, such as '1.234ms'"""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def format_memory(nbytes: float) -> str:
    """Return a size as text, such as '1.50 MB', with 1024 bytes to a KB."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes:.0f} B"


class FunctionEvent:
    """An event: a call of an operator, a run of a backward node, or a named span.

    Attributes: `name`, `overload_name`, `kind` ("operator", "node" or "annotation"), `thread`, `time_range`,
    `cpu_parent` and `cpu_children` (the spans around and inside it on its thread), `sequence_nr` (a number that an operator
    shares with the node of its gradient, or -1), `fwd_thread` (for a node, the thread of its operator; otherwise None),
    `input_shapes` and `input_dtypes` (lists with one item per argument, where the item of an argument that is not a tensor
    is empty; empty lists if arguments were not recorded), `stack`, `nbytes` (of the first result), `cpu_memory_usage` and
    `self_cpu_memory_usage` (bytes allocated minus bytes freed), `flops` and `args` (an annotation's text).

    Example:
        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.ones(3).exp()
        >>> [event.name for event in prof.events()]
        ['ones', 'exp']
    """

    __slots__ = (
        "args",
        "arguments",
        "cpu_children",
        "cpu_memory_usage",
        "cpu_parent",
        "flops",
        "fwd_thread",
        "id",
        "kind",
        "name",
        "nbytes",
        "overload_name",
        "self_cpu_memory_usage",
        "sequence_nr",
        "stack",
        "thread",
        "time_range",
    )
    count = 1

    def __init__(self, event: Event) -> None:
        self.id: int = event.id
        self.kind = event.kind
        self.name: str = event.name
        self.overload_name: str = event.overload
        self.thread: int = event.thread
        self.time_range: Interval = Interval(event.begin / 1e3, event.end / 1e3)
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.sequence_nr: int = event.sequence or -1
        self.fwd_thread: int | None = None
        self.args: str | None = None
        self.arguments: tuple[Any, ...] | None = event.arguments
        if event.kind == "annotation":
            self.args, self.arguments = (event.arguments[0] if event.arguments else None), None  # type: ignore[assignment]
        self.stack: list[str] = list(event.stack or ())
        self.nbytes: int = event.nbytes
        self.cpu_memory_usage: int = 0
        self.self_cpu_memory_usage: int = 0
        self.flops: int = flops_of(event) if event.arguments and event.kind == "operator" else 0

    @property
    def key(self) -> str:
        """The name of the event. `key_averages` groups events by kind and name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us()

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """The time of this event, excluding the spans inside it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def is_user_annotation(self) -> bool:
        return self.kind == "annotation"

    @property
    def input_shapes(self) -> Shapes:
        return [_shape(argument) for argument in self.arguments or ()]

    @property
    def input_dtypes(self) -> list[Any]:
        return [_dtype(argument) for argument in self.arguments or ()]

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent {self.name} id={self.id} thread={self.thread}"
            f" cpu_time={format_time(self.cpu_time_total)} "
            f"self_cpu_time={format_time(self.self_cpu_time_total)}>"
        )


def tensors_of(arguments: Iterable[Any] | None) -> Iterator[Argument]:
    """Yield the tensors among an event's arguments, including those in lists."""
    for argument in arguments or ():
        if isinstance(argument, Argument):
            yield argument
        elif isinstance(argument, tuple):
            yield from tensors_of(argument)


def _shape(argument: Any) -> list[Any]:
    if isinstance(argument, Argument):
        return list(argument.shape)
    return [_shape(item) for item in argument or ()]


def _dtype(argument: Any) -> Any:
    if isinstance(argument, Argument):
        return argument.dtype
    return "" if argument is None else [_dtype(item) for item in argument]


class FunctionEventAvg:
    """The sums over a group of events, such as all calls of one operator.

    If an event is inside another event of the same kind and name, only the outer event is added to `cpu_time_total`,
    `cpu_memory_usage` and `flops`. `cpu_time` is `cpu_time_total` divided by `count`.

    Example:
        >>> x = torch.ones(3)
        >>> with torch.profiler.profile() as prof:
        ...     for _ in range(5):
        ...         _ = x.exp()
        >>> average = prof.key_averages()[0]
        >>> average.key, average.count
        ('exp', 5)
    """

    count: int
    self_cpu_time_total: float
    self_cpu_memory_usage: int
    nbytes: int
    cpu_time_total: float
    cpu_memory_usage: int
    flops: int

    def __init__(self, first: FunctionEvent) -> None:
        self.key: str = first.key
        self.overload_name: str = first.overload_name
        self.kind: str = first.kind
        self.input_shapes: Shapes = first.input_shapes
        self.stack: list[str] = first.stack
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.flops = 0
        self.nbytes = 0

    def add(self, event: FunctionEvent) -> None:
        """Add an event to the sums."""
        self.count += 1
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.nbytes += event.nbytes
        if not _inside_its_own_kind(event):
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage
            self.flops += event.flops

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def is_user_annotation(self) -> bool:
        return self.kind == "annotation"

    @property
    def cpu_time_str(self) -> str:
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return format_time(self.self_cpu_time_total)

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count}"
            f" self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}>"
        )


def _inside_its_own_kind(event: FunctionEvent) -> bool:
    around = event.cpu_parent
    while around is not None:
        if around.name == event.name and around.kind == event.kind:
            return True
        around = around.cpu_parent
    return False


class EventList(list[Any]):
    """A list of FunctionEvent, or of FunctionEventAvg, that can be printed as a table.

    `total_average` raises RuntimeError for an empty list.

    Example:
        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.ones(3).exp()
        >>> "exp" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=5)
        True
    """

    def __init__(self, events: Iterable[Any] = (), *, profile_memory: bool = False, dropped: int = 0) -> None:
        super().__init__(events)
        self.profile_memory = profile_memory
        self.dropped = dropped

    @property
    def self_cpu_time_total(self) -> float:
        """The total time of all events. Where events are nested, the time is counted only once."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Return one FunctionEventAvg for each kind and name of events, in the order of their first occurrences.

        The arguments select further properties by which events are grouped: the input shapes, the innermost
        `group_by_stack_n` Python calls, and the overload."""
        groups: dict[tuple[object, ...], FunctionEventAvg] = {}
        for event in self:
            key: tuple[object, ...] = (event.kind, event.name)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_stack_n > 0:
                key += tuple(event.stack[:group_by_stack_n])
            if group_by_overload_name:
                key += (event.overload_name,)
            group = groups.get(key)
            if group is None:
                group = groups[key] = FunctionEventAvg(event)
                group.input_shapes = group.input_shapes if group_by_input_shapes else []
                group.stack = group.stack[:group_by_stack_n]
                group.overload_name = group.overload_name if group_by_overload_name else ""
            group.add(event)
        return EventList(groups.values(), profile_memory=self.profile_memory, dropped=self.dropped)

    def total_average(self) -> FunctionEventAvg:
        """Return the sum over all events, under the name "Total"."""
        if not self:
            raise RuntimeError("total_average(): no event was recorded")
        total = FunctionEventAvg(self[0])
        total.key, total.input_shapes, total.stack = "Total", [], []
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Return the events as a table of text, with a row for each event.

        `sort_by`: "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
        "self_cpu_memory_usage", "flops", "nbytes" or "count", the largest value first; None keeps the order.
        `row_limit`: -1 for all rows. `top_level_events_only`: whether to omit events that are inside another event.
        Raises ValueError if `sort_by` has another value.
        """
        from .table import format_table

        return format_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
        )

    def __str__(self) -> str:
        return self.table()

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if isinstance(index, slice):
            return EventList(found, profile_memory=self.profile_memory, dropped=self.dropped)
        return found


def _is_transposed(convolution: FunctionEvent, operators: dict[int, FunctionEvent]) -> bool:
    """Return whether the operator event `convolution` is part of a call of `conv_transpose1d`, `2d` or `3d`.

    If `convolution` computes a gradient, return this for the forward convolution.
    """
    caller = convolution.cpu_parent
    if caller is not None and caller.kind == "node" and caller.sequence_nr in operators:
        caller = operators[caller.sequence_nr].cpu_parent
    return caller is not None and caller.name.startswith("conv_transpose")


def build_events(events: Iterable[Event], *, profile_memory: bool, dropped: int) -> EventList:
    """Convert recorded events to a tree of FunctionEvents. Add the bytes of CPU memory events to the enclosing span."""
    spans: dict[int, FunctionEvent] = {}
    operators: dict[int, FunctionEvent] = {}  # the key is the number of the node that the operator recorded
    memory: list[Event] = []
    for event in events:
        if event.kind == "memory":
            memory.append(event)
            continue
        span = spans[event.id] = FunctionEvent(event)
        if event.parent in spans:
            span.cpu_parent = spans[event.parent]
            span.cpu_parent.cpu_children.append(span)
        if span.flops and event.name in CONVOLUTIONS and _is_transposed(span, operators):
            span.flops = flops_of(event, transposed=True)
        if event.sequence and event.kind == "operator":
            operators[event.sequence] = span
        elif event.sequence and event.sequence in operators:
            span.fwd_thread = operators[event.sequence].thread
    for event in memory:
        if event.name == "cpu" and event.parent in spans:
            spans[event.parent].self_cpu_memory_usage += event.nbytes
    # Parents come before their children. So in reverse order, the sum of a span is complete when it is added to the
    # parent.
    for span in reversed(spans.values()):
        if any(child.flops for child in span.cpu_children):
            span.flops = 0  # the operations were counted for the inner operators
        span.cpu_memory_usage += span.self_cpu_memory_usage
        if span.cpu_parent is not None:
            span.cpu_parent.cpu_memory_usage += span.cpu_memory_usage
    return EventList(spans.values(), profile_memory=profile_memory, dropped=dropped)
