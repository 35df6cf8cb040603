"""`python -m fuzz`: see `nox -s fuzz -- --help`."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import known_differences

from fuzz import each, operators
from fuzz.campaign import Campaign
from fuzz.compare import KINDS
from fuzz.processes import Process, importable
from fuzz.program import MODES, script

TABLE = Path(__file__).with_name("known.yaml")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="nox -s fuzz --", description="Run random programs in rushlight and in PyTorch."
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how many minutes to run (10 by default)")
    parser.add_argument("--programs", type=int, help="stop after this many programs")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the programs (0 by default)")
    parser.add_argument("--first", type=int, default=0, help="number of the first program (0 by default)")
    parser.add_argument(
        "--show", type=int, metavar="NUMBER", help="print this program as a script, and run nothing"
    )
    parser.add_argument("--ops", help="use only operators with these names, separated by commas")
    parser.add_argument(
        "--extremes",
        action="store_true",
        help="also use infinities, NaN, -0.0, large and tiny numbers, and integers at the ends of their range",
    )
    parser.add_argument(
        "--each",
        action="store_true",
        help="run programs of one call: every operator at zeros, ties, tiny and large numbers, and other shapes",
    )
    parser.add_argument(
        "--arguments",
        action="store_true",
        help="run programs of one call: every operator with one argument of a sample replaced",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("fuzz-out"), help="folder for scripts that show groups (fuzz-out)"
    )
    options = parser.parse_args(arguments)
    importable(str(Path(__file__).resolve().parents[1]))
    import torch
    import yaml

    import rushlight

    found = operators.load([rushlight, torch])
    if options.ops:
        wanted = set(options.ops.split(","))
        found = [op for op in found if op.name in wanted or op.name.partition(".")[0] in wanted]
    table = known_differences.read(yaml.safe_load(TABLE.read_text()), KINDS, MODES)
    ours, theirs = (Process(name, found, extremes=options.extremes) for name in ("rushlight", "torch"))
    try:
        if options.show is not None:
            program, _ = theirs.ask("make", (options.seed, options.show))
            print(script(program), end="")
            return 0
        started = time.monotonic()
        campaign = Campaign(
            ours, theirs, options.seed, table, lambda text: print(text, flush=True), options.out
        )
        seconds = options.minutes * 60
        with contextlib.suppress(KeyboardInterrupt):  # ends with the report
            if options.each or options.arguments:
                made = (each.replaced if options.arguments else each.programs)(found, options.seed)
                campaign.run_each(made, seconds=seconds)
            else:
                count = options.programs or float("inf")
                campaign.run(seconds=seconds, programs=count, first=options.first)
    finally:
        ours.close()
        theirs.close()
    campaign.write(options.out)
    print(f"{len(found)} operators; {campaign.summary()}; {time.monotonic() - started:.0f} s")
    for group in sorted(campaign.groups.values(), key=lambda g: -g.count):
        print(f"{group.count:6d}  {group.name}: {group.text}")
    (options.out / "groups.json").write_text(
        json.dumps({g.name: {"count": g.count, "text": g.text} for g in campaign.groups.values()}, indent=1)
    )
    met = [{**asdict(one), "reason": ""} for one in table]
    (options.out / "known.json").write_text(json.dumps(met, indent=1))
    return 1 if campaign.groups or campaign.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
