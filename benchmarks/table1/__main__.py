"""The command line: ``python -m benchmarks.table1 resnet50 gpt --peers torch,jax --threads 1,2``.

Each peer is measured beside rushlight, in processes that take turns. Results are saved after every group of modes, so that
an interrupted run continues and peers can be added later; `--again` measures again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from .. import environment, report
from .catalogue import ENTRIES
from .modes import PEERS, groups
from .report import draw, render
from .run import Plan, measure

SCHEMA = 2


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
    for name in ("python", "missing"):
        pairs = [text.partition("=") for text in getattr(given, name)]
        if wrong := [peer for peer, _, value in pairs if peer not in PEERS or not value]:
            parser.error(f"--{name} takes PEER=TEXT, with one of {', '.join(PEERS)}; got {wrong[0]!r}")
        setattr(given, name, {peer: value for peer, _, value in pairs})
    return given


def _key(row: dict[str, Any]) -> tuple[str, str, int, int | None]:
    return row["workload"], row["group"], row["threads"], row["size"]


def main(arguments: list[str]) -> int:
    given = parse(arguments)
    machine = environment.describe()
    rows: list[dict[str, Any]] = []
    if given.out.exists():
        before = json.loads(given.out.read_text())
        if before["schema"] == SCHEMA and before["machine"]["commit"] == machine["commit"]:
            rows = before["rows"]
    wanted = [
        (name, group, threads)
        for threads in given.threads
        for name in given.models or ENTRIES
        for peer in given.peers
        for group in groups(peer, images=ENTRIES[name].images, compiled=given.compile, tuned=given.malloc)
    ]
    if given.again:
        keys = {(name, group.name, threads, given.size) for name, group, threads in wanted}
        rows = [row for row in rows if _key(row) not in keys]
    done = {_key(row) for row in rows}
    work = [one for one in wanted if (one[0], one[1].name, one[2], given.size) not in done]
    pythons = dict.fromkeys(("rushlight", *PEERS), sys.executable) | given.python
    plan = Plan(seconds=given.seconds, check=not given.no_check, patience=given.patience)
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
        rows.append(row)
        report.write(given.out, {"schema": SCHEMA, "machine": machine, "rows": rows})
        print("\r\x1b[K" if shown else "", end="", file=sys.stderr)
        print(render([row]), flush=True)
    if given.chart is not None:
        draw(rows, given.chart)
    print("\n" + render(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
