"""Format events as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .events import format_memory, format_time

SORT_KEYS = (
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "flops",
    "nbytes",
    "count",
)
GAP = "  "


def format_table(
    events: Sequence[Any],
    *,
    sort_by: str | None,
    row_limit: int,
    max_src_column_width: int,
    max_name_column_width: int,
    max_shapes_column_width: int,
    header: str | None,
    top_level_events_only: bool,
) -> str:
    """Return events as the text of a table; see `EventList.table`."""
    if sort_by is not None and sort_by not in SORT_KEYS:
        hint = (
            "times of GPUs were not recorded"
            if "cuda" in sort_by or "device" in sort_by
            else "see its docstring"
        )
        raise ValueError(
            f"table(sort_by): must be one of {', '.join(SORT_KEYS)}, got {sort_by!r}\nhint: {hint}"
        )
    if not events:
        return "No events were recorded."
    total = sum(event.self_cpu_time_total for event in events)
    rows = list(events)
    if top_level_events_only:
        rows = [event for event in rows if getattr(event, "cpu_parent", None) is None]
    if sort_by is not None:
        rows.sort(key=lambda event: getattr(event, sort_by), reverse=True)
    left_out = len(rows) - row_limit if row_limit >= 0 else 0
    rows = rows[:row_limit] if row_limit >= 0 else rows

    columns: list[tuple[str, bool, list[str]]] = []  # title, whether aligned to the left, cells

    def column(title: str, cells: list[str], left: bool = False) -> None:
        columns.append((title, left, cells))

    column("Name", [_cut(event.key, max_name_column_width) for event in rows], left=True)
    if any(event.overload_name for event in rows) and not hasattr(rows[0], "id"):
        column("Overload", [event.overload_name for event in rows], left=True)
    column("Self CPU %", [_percent(event.self_cpu_time_total, total) for event in rows])
    column("Self CPU", [format_time(event.self_cpu_time_total) for event in rows])
    column("CPU total %", [_percent(event.cpu_time_total, total) for event in rows])
    column("CPU total", [format_time(event.cpu_time_total) for event in rows])
    column("CPU time avg", [format_time(event.cpu_time) for event in rows])
    if getattr(events, "profile_memory", False):
        column("CPU Mem", [format_memory(event.cpu_memory_usage) for event in rows])
        column("Self CPU Mem", [format_memory(event.self_cpu_memory_usage) for event in rows])
    if any(event.flops for event in events):
        column("FLOPs", [_count(event.flops) for event in rows])
    column("# of Calls", [str(event.count) for event in rows])
    if any(event.input_shapes for event in rows):
        column(
            "Input Shapes",
            [_cut(str(event.input_shapes), max_shapes_column_width) for event in rows],
            left=True,
        )
    if any(event.stack for event in rows):
        column(
            "Source",
            [_cut_front(event.stack[0] if event.stack else "", max_src_column_width) for event in rows],
            left=True,
        )

    lines = _layout(columns)
    if header is not None:
        lines = [header, *lines]
    if left_out > 0:
        lines.append(f"{left_out} more rows (row_limit={row_limit})")
    lines.append(f"Self CPU time total: {format_time(total)}")
    if dropped := getattr(events, "dropped", 0):
        lines.append(f"{dropped} events are missing: a thread's buffer was full (profile(buffer_events=...))")
    return "\n".join(lines) + "\n"


def _layout(columns: list[tuple[str, bool, list[str]]]) -> list[str]:
    widths = [max(len(title), *map(len, cells)) if cells else len(title) for title, _, cells in columns]

    def line(cells: list[str]) -> str:
        placed = (
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, (_, left, _) in zip(cells, widths, columns, strict=True)
        )
        return GAP.join(placed).rstrip()

    rule = GAP.join("-" * width for width in widths)
    rows = zip(*(cells for _, _, cells in columns), strict=True)
    return [rule, line([title for title, _, _ in columns]), rule, *(line(list(row)) for row in rows), rule]


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "-"


def _count(flops: int) -> str:
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if flops >= size:
            return f"{flops / size:.2f} {unit}"
    return str(flops) if flops else "-"


def _cut(text: str, width: int) -> str:
    return text if width <= 0 or len(text) <= width else text[: max(width - 3, 0)] + "..."


def _cut_front(text: str, width: int) -> str:
    return text if width <= 0 or len(text) <= width else "..." + text[len(text) - max(width - 3, 0) :]
