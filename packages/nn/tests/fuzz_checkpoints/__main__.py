"""`python -m fuzz_checkpoints`: see `nox -s fuzz-checkpoints -- --help`."""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from fuzz_checkpoints.harness import check, seeds
from fuzz_checkpoints.mutate import mutate


def campaign(count: int, seed: int, out: Path | None = None) -> tuple[Counter[str], list[bytes]]:
    """Read `count` inputs. Return how many were read and how many were refused, and the inputs that violated a rule.

    Input i is a function of (seed, i) and of the kept inputs.
    """
    kept = list(seeds())
    for data in kept:  # also allocates the memory that is needed only once
        check(data, measured=False)
    counts: Counter[str] = Counter()
    broken = []
    begin = time.monotonic()
    for number in range(count):
        chosen = random.Random(f"{seed}/{number}")
        data = mutate(chosen.choice(kept), kept, chosen)
        try:
            counts["read" if check(data) else "refused"] += 1
        except Exception as error:
            counts[f"{type(error).__name__}: {str(error)[:80]}"] += 1
            broken.append(data)
            if out is not None:
                out.mkdir(parents=True, exist_ok=True)
                (out / f"{seed}-{number}").write_bytes(data)
                if len(broken) <= 10:
                    traceback.print_exc()
        if out is not None and (number + 1) % 50_000 == 0:
            print(f"{number + 1} inputs in {time.monotonic() - begin:.0f} s: {dict(counts)}", flush=True)
    return counts, broken


def guided(seconds: float, seed: int, out: Path) -> None:
    """Let atheris choose inputs by the lines that they reach. Save those that reach new lines in `out`. Ends the process."""
    import atheris

    folder = out / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds()):
        (folder / str(number)).write_bytes(data)
    limits = [f"-max_total_time={int(seconds)}", "-timeout=5", "-rss_limit_mb=2048", "-max_len=20000"]
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], str(folder), f"-seed={seed or 1}", f"-artifact_prefix={out}/", *limits], _one)
    atheris.Fuzz()


def _one(data: bytes) -> None:
    check(data)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="nox -s fuzz-checkpoints --", description="Read mutated checkpoints."
    )
    parser.add_argument("--inputs", type=int, default=100_000, help="how many (100,000 by default)")
    parser.add_argument("--seed", type=int, default=0, help="which inputs (0 by default)")
    parser.add_argument(
        "--guided", type=float, metavar="SECONDS", help="let atheris choose them instead, for so long"
    )
    parser.add_argument("--show", type=Path, metavar="FILE", help="read this input, and nothing else")
    out = Path("fuzz-out") / "checkpoints"
    parser.add_argument("--out", type=Path, default=out, help=f"folder of inputs that break a rule ({out})")
    options = parser.parse_args(arguments)
    if options.show:
        print("read" if check(options.show.read_bytes()) else "refused")
        return 0
    if options.guided:
        guided(options.guided, options.seed, options.out)
    counts, broken = campaign(options.inputs, options.seed, options.out)
    print(f"{sum(counts.values())} inputs: {dict(counts)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
