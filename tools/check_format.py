"""Run clang-format over every C++ file of the repository: `python tools/check_format.py [--fix]`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUFFIXES = {".cpp", ".h", ".cu", ".cuh"}
FOLDERS = ("packages", "benchmarks", "docs")


def sources() -> list[str]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    # A package has a build folder only if its CMake was run by hand.
    return sorted(
        str(path.relative_to(ROOT)) for path in found if "build" not in path.relative_to(ROOT).parts
    )


def main(arguments: list[str]) -> int:
    mode = ["-i"] if "--fix" in arguments else ["--dry-run", "--Werror"]
    files = sources()
    print(f"clang-format: {len(files)} files")
    # Split the list, so that it does not exceed the limit of a command line.
    return max(
        (
            subprocess.run(["clang-format", *mode, *files[start : start + 200]], cwd=ROOT).returncode
            for start in range(0, len(files), 200)
        ),
        default=0,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
