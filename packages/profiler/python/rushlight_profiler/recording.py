"""A finished recording and its results: events, averages, suggestions and exported files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from rushlight_core.seams.profiler import Event, Header, Sink

from .advice import AdviceList, give_advice
from .events import EventList, build_events
from .sinks import make_sink


class MemoryPoint(NamedTuple):
    """The memory in use from a point in time until the next change."""

    time: float
    """Microseconds since the recording began."""
    nbytes: int
    """Bytes in use on the device, including memory that was in use when the recording began."""


class Recording:
    """The events of one recording, or of one window of a schedule.

    `write_to` passes `header` and the events in `raw` to a sink, an object that writes a file in one format.

    Methods raise RuntimeError if the required data were not recorded, and ValueError if a metric is unknown.

    Example:
        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.ones(3).exp()
        >>> prof.recording.export_chrome_trace("trace.json")
    """

    def __init__(self, header: Header, raw: list[Event]) -> None:
        self.header = header
        self.raw = raw

    @cached_property
    def _events(self) -> EventList:
        settings = self.header.metadata
        return build_events(
            self.raw, profile_memory=bool(settings.get("profile_memory")), dropped=self.header.dropped
        )

    def events(self) -> EventList:
        """Return a FunctionEvent for each operator, node and annotation, in the order in which they began."""
        return self._events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Return a FunctionEventAvg for each name; see `EventList.key_averages`."""
        return self._events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def advice(self) -> AdviceList:
        """Return suggestions to make the program faster, in descending order of `Advice.share`."""
        return give_advice(self.header, self._events)

    def memory_timeline(self, device: str = "cpu") -> list[MemoryPoint]:
        """Return the memory that tensors use on a device after each change. The list is empty if memory was not recorded."""
        points: list[MemoryPoint] = []
        nbytes = self.header.allocated if device == "cpu" else 0
        for event in self.raw:
            if event.kind == "memory" and event.name == device:
                nbytes += event.nbytes
                points.append(MemoryPoint(event.begin / 1e3, nbytes))
        return points

    def write_to(self, sink: Sink) -> None:
        """Pass the header and all events to a sink, which writes them in its format."""
        sink.begin(self.header)
        for event in self.raw:
            sink.event(event)
        sink.end()

    def export(self, path: str, format: str = "chrome") -> None:
        """Write the recording to a file.

        `format` is "chrome", "json_lines", "html", or a format that an installed package provides in the entry point group
        `rushlight.profiler`. The file is compressed if the path ends with .gz. Raises ValueError for another format.
        """
        self.write_to(make_sink(format, path))

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for Perfetto (ui.perfetto.dev) or chrome://tracing."""
        self.export(path, "chrome")

    def export_json_lines(self, path: str) -> None:
        """Write one JSON object per line, for other programs; `rushlight_profiler.load` reads the file."""
        self.export(path, "json_lines")

    def export_html(self, path: str) -> None:
        """Write one self-contained page with the table, advice, memory and timeline."""
        self.export(path, "html")

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write a line "function;function;... microseconds" for each Python stack, for flame graphs.

        `metric` must be "self_cpu_time_total". Raises RuntimeError if stacks were not recorded, and ValueError for another
        metric."""
        if metric != "self_cpu_time_total":
            raise ValueError(f"export_stacks(metric): must be 'self_cpu_time_total', got {metric!r}")
        if not self.header.metadata.get("with_stack"):
            raise RuntimeError(
                "export_stacks(): stacks were not recorded\nhint: record with profile(with_stack=True)"
            )
        sums: dict[str, float] = {}
        for event in self._events:
            if event.stack:
                line = ";".join(call.replace(";", ",") for call in reversed([event.name, *event.stack]))
                sums[line] = sums.get(line, 0.0) + event.self_cpu_time_total
        _write(path, (f"{line} {round(us)}\n" for line, us in sums.items() if round(us)))

    def export_memory_timeline(self, path: str, device: str = "cpu") -> None:
        """Write the memory in use over time to a file.

        If the path ends with .html, the page of `export_html` is written. Otherwise, the file contains JSON:
        [[microseconds...], [bytes...]]. Raises RuntimeError if memory was not recorded."""
        if not self.header.metadata.get("profile_memory"):
            raise RuntimeError(
                "export_memory_timeline(): memory was not recorded\nhint: record with profile(profile_memory=True)"
            )
        if path.endswith(".html"):
            return self.export_html(path)
        import json

        points = self.memory_timeline(device)
        _write(path, [json.dumps([[p.time for p in points], [p.nbytes for p in points]])])
        return None


def _write(path: str, lines: Iterable[str]) -> None:
    from .sinks.files import open_text

    with open_text(path) as file:
        file.writelines(lines)
