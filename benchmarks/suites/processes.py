"""processes: queues, loaders and training in several processes, each figure beside the peer's in the same run.

Every figure is measured in fresh processes, in turn with the peer. Two processors are used, or those of `--cpus`. Times and
rates are valid on a quiet machine only, bytes and descriptors also on a busy one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import process, stats
from ..environment import confined
from ..options import Options
from ..processes import loaders, queues, training
from ..report import number, table


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    measure: a function that runs in a fresh process. unit: the unit of the values that it sends. target: the target
    for the figure. judged: the figure that is compared with the target: "ratio", the value divided by the peer's, "rate",
    the peer's divided by the value, or "value". at_least: whether the target is a lower bound instead of an upper bound.
    peer: whether the peer is measured.
    """

    name: str
    measure: Callable[..., None]
    unit: str
    target: float
    judged: str = "ratio"
    at_least: bool = False
    peer: bool = True


def _rate(name: str, kind: str, workers: int, target: float) -> Figure:
    return Figure(name, loaders.throughput(kind, workers), "ms", target, "rate", at_least=True)


def _threads(kind: str, target: float) -> Figure:
    """Return a figure of two worker threads, compared with two worker processes of the peer."""
    measure = loaders.throughput(kind, 2, threads=True)
    return Figure(f"loader, {kind}, 2 threads", measure, "ms", target, "rate", at_least=True)


FIGURES = (
    Figure("round trip of 256 MB, shared", queues.shared_round_trip, "ms", 0.15),
    Figure("round trip of 256 MB, fresh", queues.fresh_round_trip, "ms", 1.0),
    Figure("10,000 small tensors", queues.small_tensors, "ms", 0.3),
    Figure("time per tensor, 100,000 held by 10,000", queues.growth_of_held, "", 1.2, "value", peer=False),
    Figure("descriptors of 100,000 held", queues.descriptors_of_held, "", 200, "value", peer=False),
    Figure("1,000 plain objects", queues.plain_round_trips, "ms", 1.05),
    _rate("loader, decode-like samples, 0 workers", "decode-like samples", 0, 1.0),
    _rate("loader, decode-like samples, 1 worker", "decode-like samples", 1, 1.0),
    _rate("loader, decode-like samples, 2 workers", "decode-like samples", 2, 1.3),
    _rate("loader, tiny samples, 0 workers", "tiny samples", 0, 3.0),
    _rate("loader, tiny samples, 1 worker", "tiny samples", 1, 3.0),
    _rate("loader, tiny samples, 2 workers", "tiny samples", 2, 3.0),
    _rate("loader, Python samples, 0 workers", "Python samples", 0, 0.9),
    _rate("loader, waiting samples, 0 workers", "waiting samples", 0, 0.9),
    _rate("loader, Python samples, 2 workers", "Python samples", 2, 1.0),
    _rate("loader, waiting samples, 2 workers", "waiting samples", 2, 1.0),
    _threads("decode-like samples", 1.0),
    _threads("Python samples", 0.5),
    _threads("waiting samples", 1.0),
    _threads("tiny samples", 3.0),
    _rate("loader, images, 0 workers", "images", 0, 1.0),
    _rate("loader, images, 2 workers", "images", 2, 1.3),
    Figure("first batch of the second epoch, 1 worker", loaders.first_batch(1), "ms", 5, "value"),
    Figure("first batch of the second epoch, 2 workers", loaders.first_batch(2), "ms", 5, "value"),
    Figure("shared memory of the loader, steps of 20 ms", loaders.memory(0.02), "MB", 1.0),
    Figure("shared memory of the loader, empty steps", loaders.memory(0.0), "MB", 1.0),
    Figure("Hogwild, 2 processes by 1", training.hogwild, "", 1.7, "value", at_least=True),
    Figure("data-parallel, 2 processes by 1", training.data_parallel, "", 1.7, "value", at_least=True),
)


def run(options: Options) -> dict[str, Any]:
    """Measure each figure in fresh processes, in turn with the peer."""
    chosen = [figure for figure in FIGURES if options.match in figure.name]
    if not chosen:
        raise ValueError(f"no figure's name contains {options.match!r}")
    repeats = 1 if options.quick else 3
    modules = {"subject": options.module, "peer": options.peer}
    rows = []
    with confined(2, options.cpu_list()):
        for figure in chosen:
            found: dict[str, list[float]] = {key: [] for key in modules if figure.peer or key == "subject"}
            try:
                for _ in range(repeats):
                    for key, values in found.items():
                        values.append(
                            process.fresh(figure.measure, modules[key], options.quick, has_children=True)
                        )
                rows.append(summarize(figure, found))
            except RuntimeError as error:
                rows.append({"name": figure.name, "problem": str(error).strip()})
            print("  ".join(_cells(rows[-1])), file=sys.stderr, flush=True)
    return {"suite": "processes", **modules, "rows": rows}


def summarize(figure: Figure, found: dict[str, list[float]]) -> dict[str, Any]:
    """Return the medians, the judged figure, and whether the target is met."""
    row: dict[str, Any] = {"name": figure.name, "unit": figure.unit, "target": figure.target}
    row |= {key: stats.summarize(values).as_dict() for key, values in found.items()}
    value = row["subject"]["median"]
    if "peer" in found:
        inverse = figure.judged == "rate"
        above, below = ("peer", "subject") if inverse else ("subject", "peer")
        row["ratio"] = stats.median_ratio(stats.ratios(found[above], found[below])).as_dict()
    if figure.judged != "value":
        value = row["ratio"]["value"]
    kept = value >= figure.target if figure.at_least else value <= figure.target
    row["verdict"] = "met" if kept else "not met"
    row["judged"] = f"{figure.judged} {'>=' if figure.at_least else '<='}"
    return row


def render(result: dict[str, Any]) -> str:
    """Return a table with one row per figure, and the errors of figures that could not be measured."""
    body = [_cells(row) for row in result["rows"]]
    header = ["figure", result["subject"], result["peer"], "ratio", "target", "verdict"]
    failures = "".join(f"\n{row['name']}: {row['problem']}" for row in result["rows"] if "problem" in row)
    return f"processes: a rate is the peer's time by the subject's\n\n{table(header, body)}{failures}"


def _cells(row: dict[str, Any]) -> list[str]:
    if "problem" in row:
        return [row["name"], "", "", "", "", "failed"]
    peer = f"{row['peer']['median']:.3g} {row['unit']}".strip() if "peer" in row else ""
    return [
        row["name"],
        f"{row['subject']['median']:.3g} {row['unit']}".strip(),
        peer,
        number(row["ratio"]["value"]) if "ratio" in row else "",
        f"{row['judged']} {row['target']:g}",
        row["verdict"],
    ]
