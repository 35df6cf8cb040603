"""Run a subset of the tests under compute-sanitizer, which reports errors of memory accesses in kernels.

    PYTHONPATH=tools python -m gpu.sanitizer [--every N]

If compute-sanitizer is not installed, this is printed, and the exit status is 0. A plug-in that emulates a device in host
memory (`--plugin`) is run without it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from gpu import plugin

ROOT = Path(__file__).resolve().parents[2]
TESTS = "packages/core/tests/operators"
# Errors that the tests cause on purpose, such as running out of memory, are not errors of kernels.
OPTIONS = ("--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "9")


def find() -> str | None:
    """Return the path of compute-sanitizer, or None."""
    folders = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    places = [str(Path(folder) / "bin") for folder in folders if folder]
    return shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path=os.pathsep.join(places)
    )


def commands(given_plugin: Path | None, every: int) -> list[list[str]]:
    """Return the programs to run: the first steps on a device, and one in `every` tests of operators."""
    attach = ["--plugin", str(given_plugin)] if given_plugin else []
    tests = ["-P", "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider",
             "-p", "rushlight_testing.on_device", "--device", "cuda", "--missing-kernels", "skip",
             "--every", str(every), *attach, "--rootdir=packages/core", TESTS]  # fmt: skip
    return [[sys.executable, "-P", "-m", "gpu.first_steps", *attach], [sys.executable, *tests]]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    plugin.add_option(parser)
    parser.add_argument("--every", type=int, default=60, help="run one test in N (default: %(default)s)")
    given = parser.parse_args()
    tool = find()
    if tool is None and given.plugin is None:
        print("compute-sanitizer is not installed")
        return 0
    prefix = [] if given.plugin or tool is None else [tool, *OPTIONS]
    failed = 0
    for command in commands(given.plugin, given.every):
        print(" ".join([*prefix, *command]), flush=True)
        failed += subprocess.run([*prefix, *command], cwd=ROOT).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
