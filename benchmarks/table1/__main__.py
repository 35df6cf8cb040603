"""The command line: ``python -m benchmarks.table1 resnet50 gpt --threads 1,2``.

Results are kept after every model, so that a run that was stopped goes on where it was; `--again` measures anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from .. import environment
from .catalogue import ENTRIES
from .modes import modes
from .report import draw, render
from .run import Plan, measure


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table1", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: all of {', '.join(ENTRIES)}")
    parser.add_argument("--threads", default="1", help="thread counts, such as 1,2 (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=120.0, help="budget of a model and thread count")
    parser.add_argument("--size", type=int, help="samples in a batch, instead of the row's own")
    parser.add_argument("--compile", action="store_true", help="also the peer's compiled modes")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has PyTorch")
    parser.add_argument(
        "--out", type=Path, default=Path("bench-out/table1.json"), help="the figures, as JSON"
    )
    parser.add_argument("--chart", type=Path, help="a bar chart: a file that ends in .png or .svg")
    parser.add_argument("--again", action="store_true", help="measure what the file has already")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.models if name not in ENTRIES]:
        parser.error(f"no such model: {', '.join(unknown)} (choose from {', '.join(ENTRIES)})")
    try:
        given.threads = [int(part) for part in given.threads.split(",")]
    except ValueError:
        parser.error(f"--threads takes integers separated by commas, got {given.threads!r}")
    return given


def main(arguments: list[str]) -> int:
    given = parse(arguments)
    machine = environment.describe()
    document: dict[str, Any] = {"schema": 1, "machine": machine, "rows": []}
    if given.out.exists() and not given.again:
        before = json.loads(given.out.read_text())
        if before["machine"]["commit"] == machine["commit"]:
            document["rows"] = before["rows"]
    done = {(row["workload"], row["threads"], row["size"]) for row in document["rows"]}
    pythons = {"rushlight": sys.executable, "torch": given.peer_python}
    shown = sys.stderr.isatty()
    for threads in given.threads:
        for name in given.models or ENTRIES:
            if (name, threads, given.size) in done:
                continue
            row = measure(
                name,
                modes(ENTRIES[name].images, compiled=given.compile),
                threads,
                Plan(seconds=given.seconds),
                pythons=pythons,
                size=given.size,
                progress=lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr) if shown else None,
            )
            document["rows"].append({**row, "size": given.size})
            given.out.parent.mkdir(parents=True, exist_ok=True)
            given.out.write_text(json.dumps(document, indent=1) + "\n")
            print("\r\x1b[K" if shown else "", end="", file=sys.stderr)
            print(render([document["rows"][-1]], "rushlight"), flush=True)
    if given.chart is not None:
        draw(document["rows"], given.chart)
    print("\n" + render(document["rows"], "rushlight"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
