"""The Trace Event Format of Chrome, which Perfetto (ui.perfetto.dev) and chrome://tracing can open.

Source: "Trace Event Format", Google, 2016. Categories and arguments have the same names as in PyTorch's traces, so
that tools for these traces can be used.
"""

from __future__ import annotations

import json
from typing import Any

from rushlight_core.seams.profiler import Argument, Event, Header

from .files import open_text

CATEGORIES = {"operator": "cpu_op", "node": "cpu_op", "annotation": "user_annotation"}
Json = dict[str, Any]


class ChromeTrace:
    """A sink that writes a Chrome trace."""

    def __init__(self, path: str) -> None:
        self._path = path

    def begin(self, header: Header) -> None:
        self._process = header.process
        # For each device, the number of bytes in use.
        self._allocated = {"cpu": header.allocated}
        # For each node of a graph, by its number: thread and time at which the operator that recorded it began.
        self._operators: dict[int, tuple[int, float]] = {}
        self._flows = 0
        self._file = open_text(self._path)
        head = {
            "schemaVersion": 1,
            "displayTimeUnit": "ns",
            "baseTimeNanoseconds": header.start_time,
            "rushlight": {"dropped": header.dropped, **header.metadata},
        }
        self._file.write(json.dumps(head)[:-1] + ', "traceEvents": [')
        self._separator = "\n"
        self._name("process_name", 0, f"python {header.process}")
        for order, (thread, name) in enumerate(header.threads.items()):
            self._name("thread_name", thread, f"{name} ({thread})")
            self._write(
                {"ph": "M", "name": "thread_sort_index", "tid": thread, "args": {"sort_index": order}}
            )
        if header.dropped:
            text = f"{header.dropped} events are missing: buffers were full"
            self._write({"ph": "i", "s": "g", "name": text, "tid": 0, "ts": header.duration / 1e3})

    def event(self, event: Event) -> None:
        if event.kind == "memory":
            return self._memory(event)
        begin = event.begin / 1e3
        self._write(
            {
                "ph": "X",
                "cat": CATEGORIES[event.kind],
                "name": event.name,
                "tid": event.thread,
                "ts": begin,
                "dur": (event.end - event.begin) / 1e3,
                "args": _arguments(event),
            }
        )
        if event.sequence and event.kind == "operator":
            self._operators[event.sequence] = event.thread, begin
        elif event.sequence in self._operators:
            self._arrow(*self._operators[event.sequence], event.thread, begin)
        return None

    def end(self) -> None:
        self._file.write("\n]}\n")
        self._file.close()

    def _memory(self, event: Event) -> None:
        total = self._allocated[event.name] = self._allocated.get(event.name, 0) + event.nbytes
        time = event.begin / 1e3
        self._write(
            {"ph": "C", "name": f"memory of {event.name}", "tid": 0, "ts": time, "args": {"bytes": total}}
        )
        sizes = {
            "Device": event.name,
            "Addr": event.address,
            "Bytes": event.nbytes,
            "Total Allocated": total,
            "Parent": event.parent,
        }
        self._write(
            {
                "ph": "i",
                "s": "t",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "tid": event.thread,
                "ts": time,
                "args": sizes,
            }
        )

    def _arrow(self, from_thread: int, from_time: float, to_thread: int, to_time: float) -> None:
        # Each arrow has a separate number, because a node can run several times if its graph is retained.
        self._flows += 1
        common = {"cat": "fwdbwd", "name": "fwdbwd", "id": self._flows}
        self._write({"ph": "s", "tid": from_thread, "ts": from_time, **common})
        self._write({"ph": "f", "bp": "e", "tid": to_thread, "ts": to_time, **common})

    def _name(self, what: str, thread: int, name: str) -> None:
        self._write({"ph": "M", "name": what, "tid": thread, "args": {"name": name}})

    def _write(self, entry: Json) -> None:
        entry["pid"] = self._process
        self._file.write(self._separator + json.dumps(entry, separators=(",", ":")))
        self._separator = ",\n"


def _arguments(event: Event) -> Json:
    result: Json = {"External id": event.id}
    if event.parent:
        result["Parent"] = event.parent
    if event.kind == "node":
        result["Backward node"] = True
    if event.overload:
        result["Overload"] = event.overload
    if event.sequence:
        result["Sequence number"] = event.sequence
    if event.nbytes:
        result["Result bytes"] = event.nbytes
    if event.kind == "annotation" and event.arguments:
        result["Text"] = event.arguments[0]
    elif event.arguments is not None:
        result["Input Dims"] = [_dims(argument) for argument in event.arguments]
        result["Input type"] = [_type(argument) for argument in event.arguments]
    if event.stack is not None:
        result["Call stack"] = ";\n".join(event.stack)
    return result


def _dims(argument: Any) -> list[Any]:
    if isinstance(argument, Argument):
        return list(argument.shape)
    return [_dims(item) for item in argument or ()]


def _type(argument: Any) -> Any:
    if isinstance(argument, Argument):
        return argument.dtype
    return "" if argument is None else [_type(item) for item in argument]
