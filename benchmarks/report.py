"""Output: aligned tables, which are Markdown too, and the JSON file."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SCHEMA = 1


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns are padded: the first to the left, the others to the right."""
    width = len(header)
    lines = [list(header), *([*row, *[""] * (width - len(row))] for row in rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(width)]
    rule = ["-" * widths[0], *("-" * (size - 1) + ":" for size in widths[1:])]
    lines.insert(1, rule)
    return "\n".join(
        "| "
        + " | ".join(
            _pad(cell, size, column) for column, (cell, size) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in lines
    )


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def number(value: float | None) -> str:
    """Return a ratio or a target with two to three significant digits; an empty text for None."""
    if value is None:
        return ""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def bound(low: float, high: float) -> str:
    """Return the text of a confidence interval."""
    return f"{number(low)}-{number(high)}"


def document(
    machine: dict[str, Any], settings: dict[str, Any], results: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the JSON document of a run. See benchmarks/README.md for its keys."""
    return {"schema": SCHEMA, "machine": machine, "settings": settings, "results": list(results)}


def write(path: Path, value: dict[str, Any]) -> None:
    """Write JSON atomically: a reader never sees a part of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".json")
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(value, file, indent=1)
            file.write("\n")
        os.chmod(temporary, 0o644)  # mkstemp forbids others to read the file; a report is not secret
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def problems(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return everything on which `--check` fails: rows without a figure and targets that are not met."""
    found: list[str] = []

    def visit(node: Any, where: str) -> None:
        if isinstance(node, dict):
            name = node.get("name") or node.get("suite")
            where = f"{where} / {name}" if name and where else name or where
            if "problem" in node:
                found.append(f"{where}: {node['problem']}")
            for key, value in node.items():
                if key.endswith("verdict") and isinstance(value, str) and value.startswith("not met"):
                    found.append(f"{where}: {key.removesuffix('verdict').strip('_') or 'target'} {value}")
                else:
                    visit(value, where)
        elif isinstance(node, list):
            for item in node:
                visit(item, where)

    visit(list(results), "")
    return found
