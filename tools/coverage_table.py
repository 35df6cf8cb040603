"""Write docs/coverage.md, the lines of the Python packages that their tests run (`nox -s coverage`)."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "coverage.md"
NAMED = 20  # number of files that are listed, those with the most lines that are not run


def counts(files: dict[str, Any]) -> dict[str, dict[str, tuple[int, int]]]:
    """Return the files of each package, with the number of lines that were run and the number of all lines.

    Args:
        files: the entry `files` in the output of `coverage json`.
    """
    packages: dict[str, dict[str, tuple[int, int]]] = {}
    for path, entry in files.items():
        parts = Path(path).parts
        ours = [i for i, part in enumerate(parts) if part == "rushlight" or part.startswith("rushlight_")]
        if not ours:
            continue  # a program that a test wrote and ran
        at = ours[-1]  # the last one, because an editable package is in a folder of the same name
        summary = entry["summary"]
        lines = summary["covered_lines"], summary["num_statements"]
        packages.setdefault(parts[at], {})["/".join(parts[at + 1 :])] = lines
    return dict(sorted(packages.items()))


def page(packages: dict[str, dict[str, tuple[int, int]]]) -> str:
    """Return the text of docs/coverage.md."""
    lines = [
        "# Coverage", "",
        "This page shows how many lines of the Python packages the packages' own tests run. `nox -s coverage` writes it.",
        "All packages are installed in one environment. coverage.py measures the tests of one package after the other,",
        "including processes that tests start, and combines the results. Lines under `if TYPE_CHECKING` and overloads of",
        "annotations do not count. Comparisons with PyTorch, the documentation's examples and other sessions are not",
        "included, and C++ is not measured.",
        "", "| package | lines | run | % |", "|---|--:|--:|--:|",
    ]  # fmt: skip
    all_run = all_lines = 0
    for package, files in packages.items():
        run, count = (sum(numbers) for numbers in zip(*files.values(), strict=True))
        lines.append(f"| `{package}` | {count} | {run} | {_percent(run, count)} |")
        all_run, all_lines = all_run + run, all_lines + count
    lines.append(f"| together | {all_lines} | {all_run} | {_percent(all_run, all_lines)} |")
    lacking = [
        (count - run, f"`{package}/{name}` ({count - run} of {count})")
        for package, files in packages.items()
        for name, (run, count) in files.items()
        if run < count
    ]
    if lacking:
        lacking.sort(key=lambda one: (-one[0], one[1]))
        texts = ", ".join(text for _, text in lacking[:NAMED])
        lines += ["", f"Most lines that are not run: {texts}."]
    return "\n".join([*lines, ""])


def _percent(run: int, count: int) -> str:
    return f"{100 * run / count:.1f}" if count else "–"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("lines", type=Path, help="the file that `coverage json` wrote")
    options = parser.parse_args(arguments)
    text = page(counts(json.loads(options.lines.read_text())["files"]))
    TABLE.write_text(text)
    print(next(line for line in text.splitlines() if line.startswith("| together")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
