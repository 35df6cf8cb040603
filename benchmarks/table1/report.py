"""The table and the bar chart of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..report import table
from .catalogue import ENTRIES

SUBJECT = "rushlight"
HEADER = ("model", "threads", "mode", "per second", "spread", "faults a step", "peak MB", "rushlight / it")

Row = dict[str, Any]


def units_per_second(row: Row, mode: str) -> float:
    """Return images, tokens or samples per second of the row's clock."""
    entry = ENTRIES[row["workload"]]
    size = entry.size if row["size"] is None else row["size"]
    return size * entry.units / row["modes"][mode][row["clock"]]["median"]


def is_tuned(mode: str) -> bool:
    """Return whether malloc is tuned from outside."""
    return "malloc" in mode.replace("+", " ").split()


def fastest(rows: Iterable[Row], *, tuned: bool) -> tuple[str, Row] | None:
    """Return the fastest mode of the other libraries relative to ours, and its result. tuned: whether tuned malloc counts.

    Modes of several groups are compared by their ratios to ours in the same group, so that a change of the machine between
    groups has no effect.
    """
    found = [
        (mode, result)
        for row in rows
        for mode, result in row["modes"].items()
        if "speed" in result and mode.split()[0] != SUBJECT and is_tuned(mode) <= tuned
    ]
    return min(found, key=lambda one: one[1]["speed"]["value"], default=None)


def by_model(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the groups of each model, number of threads and batch size."""
    found: dict[tuple[str, int, int | None], list[Row]] = {}
    for row in rows:
        found.setdefault((row["workload"], row["threads"], row["size"]), []).append(row)
    return list(found.values())


def render(rows: Iterable[Row]) -> str:
    """Return a table with a line per mode and model, and the geometric means of the ratios per number of threads."""
    lines: list[list[str]] = []
    ratios: dict[tuple[int, str], list[float]] = {}
    for groups in by_model(rows):
        title = ENTRIES[groups[0]["workload"]].title
        start = [
            title if groups[0]["size"] is None else f"{title}, {groups[0]['size']}",
            str(groups[0]["threads"]),
        ]
        seen: set[str] = set()
        for row in groups:
            for mode, result in row["modes"].items():
                if mode not in seen or mode.split()[0] != SUBJECT:  # ours is in every group
                    lines.append([*start, mode, *_cells(row, mode, result)])
                if "problem" not in result:
                    seen.add(mode)
        kinds = ("the fastest of the others", "the fastest with malloc tuned")
        with_tuned = any(is_tuned(mode) for row in groups for mode in row["modes"])
        for kind, tuned in zip(kinds, (False, True), strict=True):
            best = fastest(groups, tuned=tuned)
            if best is None or (tuned and not with_tuned):
                continue
            speed = best[1]["speed"]
            text = f"**{speed['value']:.2f}** ({speed['low']:.2f} to {speed['high']:.2f})"
            lines.append([*start, f"{SUBJECT} / {kind}, {best[0]}", "", "", "", "", text])
            ratios.setdefault((groups[0]["threads"], f"times {kind}"), []).append(speed["value"])
        if memory := _memory(groups):
            ratios.setdefault((groups[0]["threads"], "of PyTorch's peak memory"), []).append(memory)
    text = table(HEADER, lines)
    for (threads, what), values in sorted(ratios.items()):
        mean = float(np.exp(np.mean(np.log(values))))
        which = f"{_counted(threads, 'thread')}, {_counted(len(values), 'model')}"
        text += f"\n\n{which}: {mean:.2f} {what} (geometric mean)"
    return text


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _cells(row: Row, mode: str, result: Row) -> list[str]:
    if "problem" in result:
        return [result["problem"].splitlines()[0][:160], "", "", "", ""]
    speed = result.get("speed")
    return [
        f"{units_per_second(row, mode):.4g} {ENTRIES[row['workload']].unit}",
        f"{result[row['clock']]['spread']:.1%}",
        f"{result['faults']:.0f}",
        f"{result['memory'] / 1e6:.0f}",
        f"{speed['value']:.2f}" if speed else "",
    ]


def _memory(groups: Sequence[Row]) -> float | None:
    """Return our peak memory relative to that of PyTorch's fastest mode without tuned malloc."""
    torch = [row for row in groups if row["group"] == "torch"]
    best = fastest(torch, tuned=False)
    ours = torch[0]["modes"].get(SUBJECT, {}) if torch else {}
    return ours["memory"] / best[1]["memory"] if best and "memory" in ours else None


def page(document: dict[str, Any]) -> str:
    """Return the text of docs/table1.md."""
    machine = document["machine"]
    lines = [
        "# Table 1: training steps of whole models", "",
        "Table 1 of the paper that introduced PyTorch compares frameworks by the number of images, tokens or samples per",
        "second in training. `nox -s table1 -- --docs` measures the same models and two newer models with rushlight and",
        "other libraries, and writes this page and its figure: [how it",
        "measures](../benchmarks/REPRODUCE.md#table-1-training-steps-of-whole-models).", "",
        f"Measured on {machine['processor']} ({', '.join(machine['instruction_sets'])}), {machine['python']}. The libraries",
        "run alternately in separate processes. Figures are medians. The intervals have a confidence of 95 %.", "",
        "* **per second** is the rate of whole steps: forward, loss, backward and optimizer.",
        "* **spread** is half the distance between the quartiles of the steps' times, relative to their median.",
        "* **faults a step** is the number of page faults in the median step; **peak MB** is the largest resident memory.",
        "* **rushlight / it** is rushlight's rate divided by the rate of the mode in this row.", "",
        "![Rates relative to rushlight](figures/table1.svg)", "",
        render(document["rows"]), "",
    ]  # fmt: skip
    return "\n".join(lines)


def draw(rows: Iterable[Row], path: Path) -> None:
    """Draw bars of each library's speed per model, in its fastest mode, relative to rushlight, as PNG or SVG by the suffix.

    Needs matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    models = [groups for groups in by_model(rows) if fastest(groups, tuned=True)]
    bars = [(library, tuned) for library in _libraries(models) for tuned in (False, True)]
    heights = {bar: [_height(groups, *bar) for groups in models] for bar in bars}
    shown = {bar: values for bar, values in heights.items() if any(values)}
    figure, axes = pyplot.subplots(figsize=(2 + 1.6 * len(models), 4))
    width = 0.8 / max(1, len(shown))
    colors = {library: f"C{i}" for i, library in enumerate(_libraries(models))}
    for index, ((library, tuned), values) in enumerate(shown.items()):
        positions = np.arange(len(models)) + (index - len(shown) / 2 + 0.5) * width
        label = f"{library}, malloc tuned" if tuned else library
        axes.bar(
            positions, values, width, label=label, color=colors[library], hatch="//" if tuned else None,
            edgecolor="white", linewidth=0,
        )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=0.8, label=SUBJECT)
    names = [f"{ENTRIES[groups[0]['workload']].title}\n{groups[0]['threads']} thr." for groups in models]
    axes.set_xticks(np.arange(len(models)), names, fontsize=8)
    axes.set_ylabel(f"speed, {SUBJECT} = 1")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _libraries(models: Iterable[Sequence[Row]]) -> list[str]:
    names = {mode.split()[0]: None for groups in models for row in groups for mode in row["modes"]}
    return [name for name in names if name != SUBJECT]


def _height(groups: Iterable[Row], library: str, tuned: bool) -> float:
    """Return a library's speed relative to ours, in its fastest mode with or without tuned malloc; 0 if it has none."""
    values = [
        result["speed"]["value"]
        for row in groups
        for mode, result in row["modes"].items()
        if "speed" in result and mode.split()[0] == library and is_tuned(mode) == tuned
    ]
    return 1 / min(values) if values else 0.0
