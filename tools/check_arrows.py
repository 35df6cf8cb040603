"""Check which package imports which: run import-linter's contract of pyproject.toml over the sources of all packages.

The packages are read and never imported, so nothing needs to be built.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    sources = [str(path) for name in ("src", "python") for path in sorted(ROOT.glob(f"packages/*/{name}"))]
    # Core keeps C++ in src/ and Python in python/; a folder without packages on the path does no harm.
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sources), PYTHONDONTWRITEBYTECODE="1")
    command = ["lint-imports", "--config", "pyproject.toml", "--no-cache"]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
