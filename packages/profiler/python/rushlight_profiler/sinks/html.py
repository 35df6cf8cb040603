"""A self-contained HTML page with summary, advice, table, memory and timeline.

The page does not load other files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rushlight_core.seams.profiler import Event, Header

from .files import open_text

# The largest number of spans on the page, so that browsers display it without delay. The page shows how many spans are
# omitted.
MAX_SPANS = 200_000
MAX_MEMORY_POINTS = 20_000
KINDS = ("operator", "node", "annotation")


class HtmlPage:
    """A sink that writes a recording as an HTML page."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._events: list[Event] = []

    def begin(self, header: Header) -> None:
        self._header = header

    def event(self, event: Event) -> None:
        self._events.append(event)

    def end(self) -> None:
        template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
        # A name may contain any text, including "</script>".
        data = json.dumps(page_data(self._header, self._events), separators=(",", ":"))
        data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        with open_text(self._path) as file:
            file.write(template.replace("__DATA__", data))


def page_data(header: Header, raw: list[Event]) -> dict[str, Any]:
    """Return the data that the page's script reads; times are in microseconds."""
    from ..recording import Recording

    recording = Recording(header, raw)
    names: dict[str, int] = {}
    spans: list[list[float]] = []
    depths: dict[int, int] = {}
    for event in raw:
        if event.kind == "memory":
            continue
        depth = depths[event.id] = depths.get(event.parent, -1) + 1
        if len(spans) < MAX_SPANS:
            name = names.setdefault(event.name, len(names))
            times = event.begin / 1e3, (event.end - event.begin) / 1e3
            spans.append([name, event.thread, depth, *times, KINDS.index(event.kind), event.nbytes])
    table = [
        {
            "name": row.key,
            "kind": row.kind,
            "self": row.self_cpu_time_total,
            "total": row.cpu_time_total,
            "mean": row.cpu_time,
            "count": row.count,
            "memory": row.self_cpu_memory_usage,
            "bytes": row.nbytes,
        }
        for row in recording.key_averages()
    ]
    return {
        "header": {**header._asdict(), "threads": list(header.threads.items())},
        "advice": [advice._asdict() for advice in recording.advice()],
        "table": table,
        "names": list(names),
        "spans": spans,
        "left_out": len(depths) - len(spans),
        "memory": _thin([[point.time, point.nbytes] for point in recording.memory_timeline()]),
    }


def _thin(points: list[list[float]]) -> list[list[float]]:
    """Return at most MAX_MEMORY_POINTS of the points [time, bytes] of the memory chart.

    If there are more, they are divided into groups of successive points, and the points with the fewest and
    the most bytes of each group are kept."""
    if len(points) <= MAX_MEMORY_POINTS:
        return points
    stretch = -(-2 * len(points) // MAX_MEMORY_POINTS)
    kept = []
    for start in range(0, len(points), stretch):
        part = points[start : start + stretch]
        extremes = {id(point): point for point in (min(part, key=_bytes), max(part, key=_bytes))}
        kept += sorted(extremes.values())
    return kept


def _bytes(point: list[float]) -> float:
    return point[1]
