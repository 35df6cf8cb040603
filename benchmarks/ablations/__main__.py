"""The command line: ``python -m benchmarks.ablations resnet50 ncf --docs``.

Results are saved after every model, so that an interrupted run continues; `--again` measures again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from .. import environment, report
from ..table1.catalogue import ENTRIES
from ..table1.run import Plan, measure
from . import loader
from .parts import group
from .report import draw, page, render

SCHEMA = 1
LOADING = "loading"
DOCS = Path(__file__).resolve().parents[2] / "docs"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablations", description=__doc__)
    known = [*ENTRIES, LOADING]
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: all of {', '.join(known)}")
    parser.add_argument("--threads", type=int, default=1, help="of the models (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of a model, after warming up")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds to wait for one step")
    parser.add_argument("--size", type=int, help="samples in a batch, instead of the row's own")
    parser.add_argument(
        "--out", type=Path, default=Path("bench-out/ablations.json"), help="the figures, as JSON"
    )
    parser.add_argument("--again", action="store_true", help="repeat measurements that the file has")
    parser.add_argument("--docs", action="store_true", help="write docs/ablations.md and its figure")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.models if name not in known]:
        parser.error(f"no such model: {', '.join(unknown)} (choose from {', '.join(known)})")
    given.models = given.models or known
    return given


def main(arguments: list[str]) -> int:
    given = parse(arguments)
    machine = environment.describe()
    document: dict[str, Any] = {"schema": SCHEMA, "machine": machine, "rows": [], LOADING: {}}
    if given.out.exists():
        before = json.loads(given.out.read_text())
        if before["schema"] == SCHEMA and before["machine"]["commit"] == machine["commit"]:
            document |= {"rows": before["rows"], LOADING: before[LOADING]}
    if given.again:
        document["rows"] = [row for row in document["rows"] if row["workload"] not in given.models]
        document[LOADING] = {} if LOADING in given.models else document[LOADING]
    done = {(row["workload"], row["threads"], row["size"]) for row in document["rows"]}
    pythons = {"rushlight": sys.executable}
    plan = Plan(seconds=given.seconds, patience=given.patience)
    shown = sys.stderr.isatty()
    for number, name in enumerate(given.models):

        def progress(text: str, title: str = f"[{number + 1}/{len(given.models)}] {name}") -> None:
            if shown:
                print(f"\r\x1b[K{title}: {text}", end="", file=sys.stderr, flush=True)

        if name == LOADING:
            if not document[LOADING]:
                progress("epochs")
                document[LOADING] = loader.measure()
        elif (name, given.threads, given.size) not in done:
            document["rows"].append(
                measure(
                    name,
                    group(name),
                    given.threads,
                    plan,
                    pythons=pythons,
                    size=given.size,
                    progress=progress,
                )
            )
        report.write(given.out, document)
    print("\r\x1b[K" if shown else "", end="", file=sys.stderr)
    print(render(document))
    if given.docs:
        write_docs(document, DOCS)
    return 0


def write_docs(document: dict[str, Any], docs: Path) -> None:
    """Write the page, its figure, and the figure's data."""
    report.write(docs / "figures" / "ablations.json", document)
    draw(document, docs / "figures" / "ablations.svg")
    (docs / "ablations.md").write_text(page(document))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
