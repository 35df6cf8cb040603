"""Look for marks of unresolved merge conflicts in every text file that git tracks: `python tools/check_conflicts.py`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The line of equals signs between the two sides may also underline a title, so it does not count.
MARK = re.compile(rb"^(?:<{7}|>{7}|\|{7}) ", re.MULTILINE)


def tracked_files(root: Path) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True).stdout
    return [root / name for name in listed.decode().split("\0") if name]


def marks(path: Path) -> list[int]:
    """Return the numbers of the lines that begin with a mark; an empty list for a file that is not text."""
    data = path.read_bytes()
    return [] if b"\0" in data else [data.count(b"\n", 0, match.start()) + 1 for match in MARK.finditer(data)]


def main() -> int:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in tracked_files(ROOT)
        if path.is_file()
        for line in marks(path)
    ]
    for location in found:
        print(f"{location}: the mark of a merge conflict")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
