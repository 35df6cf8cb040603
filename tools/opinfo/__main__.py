"""Compare, print the differences, and write them as JSON: `python -m opinfo [NAMES]`. See the package."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import known_differences

from opinfo import isolation
from opinfo.comparison import Difference, Row
from opinfo.report import KINDS, MEANT, TIER1, lines, read_names, sort_out


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="opinfo", description="Compare with PyTorch over its own samples.")
    parser.add_argument("names", nargs="*", help="operators, as in the database (all by default)")
    parser.add_argument("--json", type=Path, help="a file for everything that was found")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (default: 1)")
    parser.add_argument("--seconds", type=float, default=120.0, help="for one operator (default: 120)")
    parser.add_argument("--shown", type=int, default=3, help="differences of an operator (default: 3)")
    options = parser.parse_args(arguments)

    import yaml
    from torch.testing._internal.common_methods_invocations import op_db

    known = [entry.formatted_name for entry in op_db]
    names = options.names or known
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no operators of the database: {' '.join(unknown)}")
    table = known_differences.read(yaml.safe_load(MEANT.read_text()), KINDS)
    tier1 = set(read_names(TIER1.read_text()))
    started = time.monotonic()
    rows = []
    command = [sys.executable, "-P", "-m", "opinfo.worker"]
    for name, answer in isolation.run(names, command, jobs=options.jobs, seconds=options.seconds):
        if "crash" in answer:
            rows.append(Row(name, differences=[Difference(name, "crash", "", "", answer["crash"])]))
        else:
            rows.append(Row.of_json(answer))
        if sys.stderr.isatty():
            print(f"\r{len(rows)} of {len(names)}  {name:<50}", end="", file=sys.stderr)
    rows.sort(key=lambda row: names.index(row.op))
    report = sort_out(rows, table, tier1)
    print("\n".join(lines(report, options.shown)))
    calls = sum(row.samples + row.errors for row in rows)
    print(f"{len(rows)} operators, {calls} samples, {time.monotonic() - started:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(report.as_json(), indent=1))
    return 1 if any(report.left.values()) or report.stale else 0


if __name__ == "__main__":
    sys.exit(main())
