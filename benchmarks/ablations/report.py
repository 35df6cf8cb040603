"""Create the table, the figure and the page of the documentation from a run's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..report import table
from ..table1.catalogue import ENTRIES
from ..table1.report import units_per_second
from .parts import LOADING_OFF, PARTS, UNMEASURED

Document = dict[str, Any]


def speed(row: dict[str, Any], switch: str) -> float | None:
    """Return the speed without a part relative to the whole library; None if it was not measured."""
    result = row["modes"].get(f"rushlight {switch}", {})
    return 1 / result["speed"]["value"] if "speed" in result else None


def memory(row: dict[str, Any], switch: str) -> float | None:
    """Return the peak memory without a part relative to the whole library."""
    result, whole = row["modes"].get(f"rushlight {switch}", {}), row["modes"]["rushlight"]
    return result["memory"] / whole["memory"] if "memory" in result and "memory" in whole else None


def render(document: Document) -> str:
    """Return two tables: of models, and of loading data."""
    header = ["model", "threads", "whole", "peak MB"] + [f"without {part.title}" for part in PARTS]
    lines = []
    notes = []
    for row in document["rows"]:
        entry, whole = ENTRIES[row["workload"]], row["modes"]["rushlight"]
        start = [entry.title, str(row["threads"])]
        if "problem" in whole:
            lines.append([*start, whole["problem"].splitlines()[0]])
            continue
        cells = [f"{units_per_second(row, 'rushlight'):.4g} {entry.unit}/s", f"{whole['memory'] / 1e6:.0f}"]
        for part in PARTS:
            cells.append(_cell(row, part.switch))
            if problem := row["modes"].get(f"rushlight {part.switch}", {}).get("problem"):
                notes.append(f"* {entry.title} without {part.title}: {problem.splitlines()[0]}")
        lines.append([*start, *cells])
    parts = []
    if lines:
        parts = [table(header, lines)]
    if notes:
        parts.append("\n".join(notes))
    if loading := document.get("loading"):
        parts.append(
            table(["loading data", "images per second", "peak MB", "speed", "memory"], _loading(loading))
        )
    return "\n\n".join(parts)


def _cell(row: dict[str, Any], switch: str) -> str:
    if f"rushlight {switch}" not in row["modes"]:
        return "has none"
    quick, size = speed(row, switch), memory(row, switch)
    return "failed" if quick is None or size is None else f"{quick:.2f}, {size:.2f}"


def _loading(loading: dict[str, dict[str, Any]]) -> list[list[str]]:
    lines = []
    whole = loading["all parts"]
    for name, result in loading.items():
        title = name if name == "all parts" else f"without {name}"
        if "problem" in result:
            lines.append([title, result["problem"]])
            continue
        cells = [f"{result['images'] / result['wall']['median']:.4g}", f"{result['memory'] / 1e6:.0f}"]
        if "problem" not in whole and name != "all parts":
            cells.append(f"{whole['wall']['median'] / result['wall']['median']:.2f}")
            cells.append(f"{result['memory'] / whole['memory']:.2f}")
        lines.append([title, *cells])
    return lines


def page(document: Document) -> str:
    """Return the text of docs/ablations.md."""
    machine = document["machine"]
    off = [f"| {part.title} | {part.off} |" for part in PARTS]
    off += [f"| {name} | {text} |" for name, text in LOADING_OFF.items()]
    off += [f"| {name} | not measured: {text} |" for name, text in UNMEASURED.items()]
    lines = [
        "# Ablations", "",
        "This page shows the effect of parts of the library. Each column switches one part off and leaves the others on. A",
        "cell has two ratios to the whole library: speed of a training step, and peak memory. A first ratio of 0.50 means",
        "that a step takes twice as long without the part. The steps are those of",
        "[Table 1](../benchmarks/REPRODUCE.md#table-1-training-steps-of-whole-models), and all modes of a model take turns.",
        "`nox -s ablations -- --docs` measures again, and writes this page and its figure.", "",
        "| part | switched off |", "|---|---|", *off, "",
        f"Measured on {machine['processor']} ({', '.join(machine['instruction_sets'])}), {machine['python']}.", "",
        "![Speed and memory without each part](figures/ablations.svg)", "",
        render(document), "",
    ]  # fmt: skip
    return "\n".join(lines)


def draw(document: Document, path: Path) -> None:
    """Draw bars of speed and peak memory without each part, relative to the whole library. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "rushlight"  # makes the file depend on the data only
    rows = [row for row in document["rows"] if "problem" not in row["modes"]["rushlight"]]
    figure, panels = pyplot.subplots(
        1, 2, figsize=(10, 1 + 0.16 * max(1, len(rows)) * len(PARTS)), sharey=True
    )
    height = 0.8 / max(1, len(rows))
    for axes, what, of in zip(panels, ("speed", "peak memory"), (speed, memory), strict=True):
        for index, row in enumerate(rows):
            positions, values = _bars(row, of, index, len(rows))
            label = f"{ENTRIES[row['workload']].title}, {row['threads']} thr."
            axes.barh(positions, values, height, label=label)
        axes.axvline(1.0, color="black", linewidth=0.8)
        axes.set_xlabel(f"{what}, the whole library = 1")
    panels[0].set_yticks(range(len(PARTS)), [f"without\n{part.title}" for part in PARTS], fontsize=8)
    panels[0].invert_yaxis()
    panels[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _bars(row: dict[str, Any], of: Any, index: int, count: int) -> tuple[list[float], Sequence[float]]:
    found = [(position, of(row, part.switch)) for position, part in enumerate(PARTS)]
    shown = [(position, value) for position, value in found if value is not None]
    return [position + (index - count / 2 + 0.5) * 0.8 / count for position, _ in shown], [
        value for _, value in shown
    ]
