"""Check that the types of the packages' public names are known: `pyright --verifytypes` of every given package.

It runs in the environment in which the packages are installed. A package's score is the fraction of its public names whose
types are declared; it must be at least 99 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

LEAST = 0.99


def score(package: str) -> tuple[float, list[str]]:
    """Return the fraction of the public names that have a type, and the problems of the others."""
    command = ["pyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        raise SystemExit(
            f"pyright --verifytypes {package} printed no report:\n{done.stdout}{done.stderr}"
        ) from None
    if not report["symbols"]:
        raise SystemExit(f"pyright --verifytypes {package} found no public name; is the package installed?")
    wrong = [
        f"{symbol['name']}: {diagnostic['message'].splitlines()[0]}"
        for symbol in report["symbols"]
        if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]
        for diagnostic in symbol["diagnostics"]
    ]
    return report["completenessScore"], wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("packages", nargs="+", help="import names")
    failed = False
    for package in parser.parse_args().packages:
        part, wrong = score(package)
        print(f"{package}: {part:.2%} of the public names have a known type")
        for line in wrong:
            print(f"  {line}")
        failed = failed or part < LEAST
    return failed


if __name__ == "__main__":
    sys.exit(main())
