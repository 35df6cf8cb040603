"""`python -m rushlight.as_torch program.py [arguments]`, or `-m module [arguments]`."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from rushlight.as_torch._code import VARIABLE

USAGE = """usage: python -m rushlight.as_torch program.py [arguments]
       python -m rushlight.as_torch -m module [arguments]
Runs a program that imports torch with rushlight under that name."""


def main(arguments: list[str]) -> int:
    """Runs what the command line names; its exit status is the program's."""
    match arguments:
        case ["-h" | "--help"]:
            print(USAGE)
            return 0
        case ["-m", name, *rest]:
            os.environ[VARIABLE] = f"module:{name}"
            sys.argv[1:] = rest
            sys.path[0] = os.getcwd()
        case [path, *rest] if not path.startswith("-"):
            if not Path(path).is_file():
                print(f"rushlight.as_torch: there is no file {path}", file=sys.stderr)
                return 2
            os.environ[VARIABLE] = f"path:{Path(path).absolute()}"
            sys.argv[1:] = rest
            sys.path[0] = str(Path(path).resolve().parent)
        case _:
            print(USAGE, file=sys.stderr)
            return 2
    runpy.run_module("rushlight.as_torch._program", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
