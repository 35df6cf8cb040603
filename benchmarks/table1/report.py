"""The table and the bar chart of a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..report import table
from .catalogue import ENTRIES


def units_per_second(row: dict[str, Any], mode: str) -> float:
    """Images, tokens or samples per second of the row's clock."""
    entry = ENTRIES[row["workload"]]
    return (row["size"] or entry.size) * entry.units / row["modes"][mode][row["clock"]]["median"]


def render(rows: Iterable[dict[str, Any]], subject: str) -> str:
    """A table with a line for every mode of every model, and the geometric means of the ratios per number of threads."""
    header = [
        "model",
        "threads",
        "mode",
        "per second",
        "spread",
        "faults a step",
        "peak MB",
        "rushlight / it",
    ]
    lines: list[list[str]] = []
    ratios: dict[int, list[float]] = {}
    for row in rows:
        ours = row["modes"][subject]
        for mode, result in row["modes"].items():
            start = [ENTRIES[row["workload"]].title, str(row["threads"]), mode]
            if "problem" in result:
                lines.append([*start, result["problem"].splitlines()[0], "", "", "", ""])
                continue
            ratio = ""
            if mode != subject and "problem" not in ours:
                ratio = f"{result[row['clock']]['median'] / ours[row['clock']]['median']:.2f}"
            lines.append(
                [
                    *start,
                    f"{units_per_second(row, mode):.4g} {ENTRIES[row['workload']].unit}",
                    f"{result[row['clock']]['spread']:.1%}",
                    f"{result['faults']:.0f}",
                    f"{result['memory'] / 1e6:.0f}",
                    ratio,
                ]
            )
        if "speed" in row:
            speed = row["speed"]
            lines.append(
                [
                    ENTRIES[row["workload"]].title,
                    str(row["threads"]),
                    f"{subject} / fastest of the others",
                    "",
                    "",
                    "",
                    "",
                    f"**{speed['value']:.2f}** ({speed['low']:.2f} to {speed['high']:.2f})",
                ]
            )
            ratios.setdefault(row["threads"], []).append(speed["value"])
    text = table(header, lines)
    for threads, values in sorted(ratios.items()):
        mean = float(np.exp(np.mean(np.log(values))))
        text += f"\n\n{threads} threads, {len(values)} models: {mean:.2f} times the fastest of the others (geometric mean)"
    return text


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Bars of speed per model and mode, relative to the fastest mode of the others; PNG or SVG by the path's suffix.

    Needs matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [row for row in rows if "speed" in row]
    modes = list(dict.fromkeys(mode for row in rows for mode in row["modes"]))
    figure, axes = pyplot.subplots(figsize=(2 + 1.4 * len(rows), 4))
    width = 0.8 / len(modes)
    for index, mode in enumerate(modes):
        heights = []
        for row in rows:
            best = row["modes"][row["best peer"]][row["clock"]]["median"]
            result = row["modes"].get(mode, {"problem": ""})
            heights.append(0.0 if "problem" in result else best / result[row["clock"]]["median"])
        places = np.arange(len(rows)) + (index - len(modes) / 2 + 0.5) * width
        axes.bar(places, heights, width, label=mode)
    axes.axhline(1.0, color="black", linewidth=0.8)
    names = [f"{ENTRIES[row['workload']].title}\n{row['threads']} thr." for row in rows]
    axes.set_xticks(np.arange(len(rows)), names, fontsize=8)
    axes.set_ylabel("speed, the fastest other mode = 1")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
