"""programs: loading of programs, calls beside eager rushlight and onnxruntime, capture, and calls of the C interface.

Each figure is measured in fresh processes. Times are CPU times, except for calls through the C interface, which are medians
of a thousand short blocks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import process, stats
from ..environment import confined
from ..options import Options
from ..programs import c_interface, calls, capturing, loading
from ..report import bound, number, table
from ..table1.catalogue import ENTRIES

BATCHES = (1, 16)
TO_EAGER, TO_ONNXRUNTIME = 1.0, 0.9
_LOAD, _LOAD_IN_C, _READ = "load 100 MB in Python", "load 100 MB in C", "memory that loading takes"
_CAPTURE, _CALL = "capture ResNet-50", "rl_call over the typed call"
TARGETS = {_LOAD: 20.0, _LOAD_IN_C: 20.0, _READ: 5.0, _CAPTURE: 1000.0, _CALL: 120.0}
UNITS = {_READ: "MB", _CALL: "ns"}  # else ms


def model_rows(match: str = "") -> list[tuple[str, str, int]]:
    """Return the title, the name in the table of workloads, and the batch size of each row about a model."""
    rows = [
        (f"{ENTRIES[name].title}, batch {size}", name, size) for name in calls.ARGUMENTS for size in BATCHES
    ]
    return [row for row in rows if match in row[0]]


def run(options: Options) -> dict[str, Any]:
    """Measure the single figures, then the models."""
    if options.module != "rushlight":
        raise ValueError(f"programs: measures rushlight, not {options.module}")
    models = model_rows(options.match)
    chosen = [name for name in TARGETS if options.match in name]
    if not models and not chosen:
        raise ValueError(f"no figure's name contains {options.match!r}")
    threads = options.threads[0]
    with confined(threads, options.cpu_list()):
        figures = _figures(chosen, options)
        rows = []
        for title, name, size in models:
            try:
                agreement, series = process.stream(calls.measure, name, size, threads, options.quick)
                rows.append(summarize(title, agreement, series))
            except RuntimeError as error:
                rows.append({"name": title, "problem": str(error).strip()})
    result = {"suite": "programs", "peer": options.peer, "figures": figures, "rows": rows}
    measured = [row for row in rows if "paired" in row]
    if measured and len(measured) == len(rows):
        for key, target in (("eager", TO_EAGER), ("onnxruntime", TO_ONNXRUNTIME)):
            mean = stats.geometric_mean([np.asarray(row["paired"][key]) for row in measured])
            verdict = stats.verdict(mean, target)
            result[f"mean_to_{key}"] = {"name": f"mean to {key}"} | mean.as_dict() | {"verdict": verdict}
    return result


def _figures(chosen: list[str], options: Options) -> list[dict[str, Any]]:
    repeats = 2 if options.quick else 7
    found: dict[str, list[float]] = {name: [] for name in chosen}
    peer: dict[str, list[float]] = {}

    def repeat(function: Callable[..., None], *arguments: Any) -> list[Any]:
        return [process.fresh(function, *arguments) for _ in range(repeats)]

    if {_LOAD, _LOAD_IN_C, _READ} & set(chosen):
        with tempfile.TemporaryDirectory() as folder:
            process.fresh(loading.write_files, folder)
            if _LOAD in found or _READ in found:
                loads = repeat(loading.in_python, folder)
                for name, key in ((_LOAD, "ms"), (_READ, "mb")):
                    if name in found:
                        found[name] = [load[key] for load in loads]
            if _LOAD_IN_C in found:
                found[_LOAD_IN_C] = [load["ms"] for load in repeat(loading.in_c, folder)]
    if _CAPTURE in found:
        repeats = min(repeats, 3)
        found[_CAPTURE] = repeat(capturing.capture, options.module)
        peer[_CAPTURE] = repeat(capturing.capture, options.peer)
    if _CALL in found:
        repeats = min(repeats, 3)
        found[_CALL] = repeat(c_interface.over_typed_call)
    rows = []
    for name, values in found.items():
        row = {"name": name, "unit": UNITS.get(name, "ms"), "target": TARGETS[name]}
        row["subject"] = stats.summarize(values).as_dict()
        if name in peer:
            row["peer"] = stats.summarize(peer[name]).as_dict()
        row["verdict"] = "met" if row["subject"]["median"] <= TARGETS[name] else "not met"
        rows.append(row)
    return rows


def summarize(title: str, agreement: dict[str, Any], series: dict[str, list[float]]) -> dict[str, Any]:
    """Return the medians, the program's ratios to the others, and whether the results agree."""
    row: dict[str, Any] = {"name": title, **agreement, "ns": {}, "paired": {}}
    for key, values in series.items():
        row["ns"][key] = stats.summarize(values).as_dict()
        if key != "program":
            paired = stats.ratios(series["program"], values)
            row["paired"][key] = [float(each) for each in paired]
            row[f"to_{key}"] = stats.median_ratio(paired).as_dict()
    row["agreement_verdict"] = "met" if agreement["as_eager"] and agreement["distance"] <= 1 else "not met"
    return row


def render(result: dict[str, Any]) -> str:
    """Return tables of the single figures, of the models, and of the means."""
    parts = ["programs"]
    if result["figures"]:
        body = []
        for row in result["figures"]:
            shown = [
                f"{row[key]['median']:.3g} {row['unit']}" if key in row else "" for key in ("subject", "peer")
            ]
            body.append([row["name"], *shown, f"{row['target']:g} {row['unit']}", row["verdict"]])
        parts.append(table(["figure", "rushlight", result["peer"], "target", "verdict"], body))
    if result["rows"]:
        header = [
            "one call",
            "program",
            "captured",
            "eager",
            "onnxruntime",
            "to eager",
            "95 % interval",
            "to onnxruntime",
        ]
        parts.append(
            table([*header, "95 % interval", "as eager's", "agreement"], [*map(_cells, result["rows"])])
        )
        parts.append(
            "program: with batch norms folded; captured: without. as eager's: of the captured program, bit for bit."
            f" agreement: the largest |difference| to onnxruntime by {calls.ATOL:g} + {calls.RTOL:g} |value|, of at"
            " most 1, with Winograd off"
        )
    for key, target in (("eager", TO_EAGER), ("onnxruntime", TO_ONNXRUNTIME)):
        mean = result.get(f"mean_to_{key}")
        if mean is not None:
            parts.append(
                f"geometric mean to {key}: {number(mean['value'])} ({bound(mean['low'], mean['high'])}),"
                f" target {target}: {mean['verdict']}"
            )
    return "\n\n".join(parts)


def _cells(row: dict[str, Any]) -> list[str]:
    if "problem" in row:
        return [row["name"], row["problem"].splitlines()[-1]]
    times = [
        f"{row['ns'][key]['median'] / 1e6:.3g} ms" if key in row["ns"] else ""
        for key in ("program", "captured", "eager", "onnxruntime")
    ]
    ratios = []
    for key in ("to_eager", "to_onnxruntime"):
        ratio = row[key]
        ratios += [number(ratio["value"]), bound(ratio["low"], ratio["high"])]
    return [row["name"], *times, *ratios, "yes" if row["as_eager"] else "no", f"{row['distance']:.2g}"]
