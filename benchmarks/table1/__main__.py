"""The command line: ``python -m benchmarks.table1 resnet50 gpt --peers torch,jax --threads 1,2``.

Each peer is measured beside rushlight, in processes that take turns. Results are saved after every group of modes, so that
an interrupted run continues and peers can be added later. A group is measured again if a mode has failed or the settings
have changed, and with `--again` in any case.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from .. import environment, report
from .catalogue import ENTRIES
from .modes import PEERS, Group, groups
from .report import draw, page, render
from .run import Plan, measure

ROOT = Path(__file__).resolve().parents[2]

SCHEMA = 3


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table1", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: all of {', '.join(ENTRIES)}")
    parser.add_argument("--peers", default="torch", help=f"of {', '.join(PEERS)} (default: %(default)s)")
    parser.add_argument("--threads", default="1", help="thread counts, such as 1,2 (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="budget of a group of modes, after warming up"
    )
    parser.add_argument("--patience", type=float, default=600.0, help="seconds to wait for one step")
    parser.add_argument("--size", type=int, help="samples in a batch, instead of the row's own")
    parser.add_argument("--compile", action="store_true", help="also measure the peers' compiled modes")
    parser.add_argument(
        "--malloc", action="store_true", help="also measure the peers with glibc's malloc tuned from outside"
    )
    parser.add_argument(
        "--no-check",
        action="store_true",
        help="do not compare the losses of the peers' first steps with ours",
    )
    parser.add_argument(
        "--python", action="append", default=[], metavar="PEER=PATH", help="interpreter that has the peer"
    )
    parser.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="PEER=REASON",
        help="why the peer cannot be measured",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("bench-out/table1.json"), help="the figures, as JSON"
    )
    parser.add_argument("--chart", type=Path, help="a bar chart: a file that ends in .png or .svg")
    parser.add_argument("--docs", action="store_true", help="write docs/table1.md and its figure")
    parser.add_argument("--again", action="store_true", help="repeat measurements that the file has")
    given = parser.parse_args(arguments)
    given.peers = given.peers.split(",")
    for what, names, known in (("model", given.models, ENTRIES), ("peer", given.peers, PEERS)):
        if unknown := [name for name in names if name not in known]:
            parser.error(f"no such {what}: {', '.join(unknown)} (choose from {', '.join(known)})")
    try:
        given.threads = [int(part) for part in given.threads.split(",")]
    except ValueError:
        parser.error(f"--threads takes integers separated by commas, got {given.threads!r}")
    if min(given.threads) < 1:
        parser.error(f"--threads takes positive integers, got {min(given.threads)}")
    if given.size is not None and given.size < 1:
        parser.error(f"--size takes a positive integer, got {given.size}")
    if given.chart is not None:
        if given.chart.suffix not in (".png", ".svg"):
            parser.error(f"--chart takes a file that ends in .png or .svg, got {str(given.chart)!r}")
        if not given.chart.parent.is_dir():
            parser.error(f"--chart takes a file in an existing folder, got {str(given.chart)!r}")
    if (given.chart is not None or given.docs) and importlib.util.find_spec("matplotlib") is None:
        parser.error("--chart and --docs need matplotlib, which is not installed")
    for name in ("python", "missing"):
        pairs = [text.partition("=") for text in getattr(given, name)]
        if wrong := [peer for peer, _, value in pairs if peer not in PEERS or not value]:
            parser.error(f"--{name} takes PEER=TEXT, with one of {', '.join(PEERS)}; got {wrong[0]!r}")
        setattr(given, name, {peer: value for peer, _, value in pairs})
    return given


def _key(row: dict[str, Any]) -> tuple[str, str, int, int | None]:
    return row["workload"], row["group"], row["threads"], row["size"]


def _is_done(row: dict[str, Any] | None, group: Group, plan: Plan) -> bool:
    """Return whether the row has a figure for each mode of the group, measured with these settings."""
    return (
        row is not None
        and (row["seconds"], row["check"]) == (plan.seconds, plan.check)
        and row["modes"].keys() == set(map(str, group.modes))
        and not any("problem" in result for result in row["modes"].values())
    )


def read(path: Path, commit: str) -> list[dict[str, Any]]:
    """Return the rows of an earlier run of the same commit, or an empty list if there are none."""
    if not path.exists():
        return []
    try:
        before = json.loads(path.read_text())
        same = before["schema"] == SCHEMA and before["machine"]["commit"] == commit
        rows: list[dict[str, Any]] = before["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(
            f"--out: must be a file of an earlier run, or a new one, got {str(path)!r}: {error!r}\n"
            "hint: remove the file, or choose another one"
        ) from None
    return rows if same else []


def main(arguments: list[str]) -> int:
    given = parse(arguments)
    machine = environment.describe()
    rows = {_key(row): row for row in read(given.out, machine["commit"])}
    wanted = [
        (name, group, threads)
        for threads in given.threads
        for name in given.models or ENTRIES
        for peer in given.peers
        for group in groups(peer, images=ENTRIES[name].images, compiled=given.compile, tuned=given.malloc)
    ]
    pythons = dict.fromkeys(("rushlight", *PEERS), sys.executable) | given.python
    plan = Plan(seconds=given.seconds, check=not given.no_check, patience=given.patience)
    work = [
        (name, group, threads)
        for name, group, threads in wanted
        if given.again or not _is_done(rows.get((name, group.name, threads, given.size)), group, plan)
    ]
    shown = sys.stderr.isatty()
    for number, (name, group, threads) in enumerate(work):
        title = f"[{number + 1}/{len(work)}] {name} beside {group.name}, {threads} threads"

        def progress(text: str, title: str = title) -> None:
            if shown:
                print(f"\r\x1b[K{title}: {text}", end="", file=sys.stderr, flush=True)

        row = measure(
            name, group, threads, plan,
            pythons=pythons, size=given.size, missing=given.missing, progress=progress,
        )  # fmt: skip
        rows.pop(_key(row), None)
        rows[_key(row)] = row
        report.write(given.out, {"schema": SCHEMA, "machine": machine, "rows": list(rows.values())})
        print("\r\x1b[K" if shown else "", end="", file=sys.stderr)
        print(render([row]), flush=True)
    if given.chart is not None:
        draw(rows.values(), given.chart)
    if given.docs:
        docs, document = ROOT / "docs", {"schema": SCHEMA, "machine": machine, "rows": list(rows.values())}
        report.write(docs / "figures" / "table1.json", document)
        draw(rows.values(), docs / "figures" / "table1.svg")
        (docs / "table1.md").write_text(page(document))
    print("\n" + render(rows.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
