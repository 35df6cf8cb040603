"""The command line: ``python -m benchmarks.roofline resnet50 gpt``.

For each model it measures the operations and bytes of a training step, the smallest time that the machine's ceilings allow,
the actual time, the part of it that is spent in oneDNN, and the time without oneDNN. `--docs` writes docs/roofline.md and
its figure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .. import environment, report
from ..table1.catalogue import ENTRIES
from ..table1.run import write_start
from ..table1.training import FailedError
from . import ceilings
from .counts import roof, vendor_seconds
from .figures import draw, page, render

SCHEMA = 1
ROOT = Path(__file__).resolve().parents[2]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roofline", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: all of {', '.join(ENTRIES)}")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=7, help="timed steps (default: %(default)s)")
    parser.add_argument("--size", type=int, help="samples in a batch, instead of the row's own")
    parser.add_argument(
        "--out", type=Path, default=Path("bench-out/roofline.json"), help="the figures, as JSON"
    )
    parser.add_argument("--docs", action="store_true", help="write docs/roofline.md and its figure")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.models if name not in ENTRIES]:
        parser.error(f"no such model: {', '.join(unknown)} (choose from {', '.join(ENTRIES)})")
    given.models = given.models or list(ENTRIES)
    return given


def measure(
    model: str, threads: int, steps: int, size: int | None, limits: dict[str, float]
) -> dict[str, Any]:
    """Return a row: the step with the time that oneDNN reports, and the step without oneDNN if the model uses it."""
    row: dict[str, Any] = {"workload": model, "threads": threads, "size": size}
    try:
        with tempfile.TemporaryDirectory() as folder:
            start = Path(folder) / "start.npz"
            write_start(sys.executable, model, size or ENTRIES[model].size, start)
            whole = _step(model, start, threads, "default", steps)[0]
            row |= {name: sum(one[name] for one in whole["operators"]) for name in ("flops", "bytes")}
            row |= {
                "seconds": whole["seconds"],
                "roof": roof(whole["operators"], limits),
                "operators": whole["operators"],
            }
            told, text = _step(model, start, threads, "default", steps, ONEDNN_VERBOSE="profile_exec")
            inside = vendor_seconds(text)[: len(told["times"])]
            row["vendor"] = sum(inside) / sum(told["times"])
            if ENTRIES[model].images:
                row["without vendor"] = _step(model, start, threads, "plain", max(1, steps // 3))[0][
                    "seconds"
                ]
    except FailedError as error:
        row["problem"] = str(error)
    return row


def _step(
    model: str, start: Path, threads: int, mode: str, steps: int, **variables: str
) -> tuple[dict[str, Any], str]:
    """Return the result and the output of `step.py`."""
    out = start.with_name("step.json")
    command = [
        sys.executable,
        "-m",
        "benchmarks.roofline.step",
        model,
        str(start),
        str(threads),
        mode,
        str(steps),
        str(out),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise FailedError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    found: dict[str, Any] = json.loads(out.read_text())
    return found, done.stdout


def main(arguments: list[str]) -> int:
    given = parse(arguments)
    with environment.confined(given.threads):
        limits = ceilings.measure(given.threads)
        document: dict[str, Any] = {
            "schema": SCHEMA, "machine": environment.describe(), "ceilings": limits, "rows": []
        }  # fmt: skip
        print(f"{limits['gflops']:.0f} GFLOP/s, {limits['gbytes']:.1f} GB/s", flush=True)
        for model in given.models:
            document["rows"].append(measure(model, given.threads, given.steps, given.size, limits))
            report.write(given.out, document)
            print(render({**document, "rows": document["rows"][-1:]}), flush=True)
    print("\n" + render(document))
    if given.docs:
        docs = ROOT / "docs"
        report.write(docs / "figures" / "roofline.json", document)
        draw(document, docs / "figures" / "roofline.svg")
        (docs / "roofline.md").write_text(page(document))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
