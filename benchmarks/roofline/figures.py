"""Create the table, the figure and the page of the documentation from a run's JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..report import table
from ..table1.catalogue import ENTRIES
from .counts import furthest

Document = dict[str, Any]

HEADER = (
    "model", "threads", "GFLOP", "GB", "roof, s", "step, s", "of the roof", "GFLOP/s", "in oneDNN", "step without it, s",
)  # fmt: skip


def render(document: Document) -> str:
    lines = []
    for row in document["rows"]:
        start = [ENTRIES[row["workload"]].title, str(row["threads"])]
        if "problem" in row:
            lines.append([*start, row["problem"]])
            continue
        plain = row.get("without vendor")
        lines.append(
            [
                *start,
                f"{row['flops'] / 1e9:.1f}",
                f"{row['bytes'] / 1e9:.2f}",
                f"{row['roof']:.3f}",
                f"{row['seconds']:.3f}",
                f"{row['roof'] / row['seconds']:.0%}",
                f"{row['flops'] / row['seconds'] / 1e9:.0f}",
                f"{row['vendor']:.0%}",
                "" if plain is None else f"{plain:.3f}",
            ]
        )
    return table(HEADER, lines)


def above(document: Document, count: int = 4) -> str:
    """Return a table of the operators of each model that exceed their smallest possible times the most."""
    lines = []
    for row in document["rows"]:
        for one in furthest(row.get("operators", []), document["ceilings"], count):
            lines.append(
                [
                    ENTRIES[row["workload"]].title,
                    f"`{one['name']}`",
                    str(one["calls"]),
                    f"{1e3 * one['seconds']:.1f}",
                    f"{one['flops'] / one['seconds'] / 1e9:.0f}",
                    f"{one['bytes'] / one['seconds'] / 1e9:.1f}",
                ]
            )
    return table(["model", "operator", "calls", "ms", "GFLOP/s", "GB/s"], lines)


def page(document: Document) -> str:
    """Return the text of docs/roofline.md."""
    machine, limits = document["machine"], document["ceilings"]
    lines = [
        "# Roofline", "",
        "How near do training steps of [Table 1](../benchmarks/REPRODUCE.md#table-1-training-steps-of-whole-models) come",
        "to what the machine can do? `nox -s roofline -- --docs` measures again, and writes this page and its figure.", "",
        f"Measured on {machine['processor']} ({', '.join(machine['instruction_sets'])}), {machine['python']}. The ceilings",
        f"are measured on the same threads: {limits['gflops']:.0f} GFLOP/s in products of square matrices of 2048 rows,",
        f"the better of ours and NumPy's, and {limits['gbytes']:.1f} GB/s read and written by a copy of 256 MB.", "",
        "* **GFLOP** counts multiplications and additions of products, convolutions and attention, as the profiler does.",
        "  Minimal filtering needs fewer, so a convolution can exceed the ceiling.",
        "* **GB** counts each tensor that an operator reads, and its result, as if there were no caches.",
        "* **roof** is the sum, over the operators, of the longer of the two times that the ceilings allow.",
        "* **in oneDNN** is the part of the step's time that oneDNN reports about itself. No other vendor's library takes",
        "  part in these steps. The last column is the step with `backends.mkldnn.enabled = False`.", "",
        render(document), "",
        "![Steps under the ceilings](figures/roofline.svg)", "",
        "The operators that exceed the roof by the most time, in one step under the profiler:", "",
        above(document), "",
    ]  # fmt: skip
    return "\n".join(lines)


def draw(document: Document, path: Path) -> None:
    """Draw operations per second against operations per byte, below the ceilings. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "rushlight"  # makes the file depend on the data only
    limits = document["ceilings"]
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    intensity = np.logspace(-1, 3, 100)
    axes.plot(
        intensity, np.minimum(limits["gflops"], intensity * limits["gbytes"]), color="black", linewidth=0.8
    )
    for row in document["rows"]:
        if "problem" not in row and row["flops"]:
            label = f"{ENTRIES[row['workload']].title}, {row['threads']} thr."
            axes.scatter(row["flops"] / row["bytes"], row["flops"] / row["seconds"] / 1e9, label=label, s=24)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("GFLOP/s")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
