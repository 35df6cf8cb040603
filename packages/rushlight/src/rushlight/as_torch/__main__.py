"""The command `python -m rushlight.as_torch`: run a program, or report which names of torch are missing or differ."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from rushlight.as_torch._code import VARIABLE

USAGE = """usage: python -m rushlight.as_torch program.py [arguments]
       python -m rushlight.as_torch -m module [arguments]
       python -m rushlight.as_torch report FILE-OR-FOLDER...
Runs a program that imports torch with rushlight under that name; `report` lists which names of torch that programs use are
missing, and which differ, without running them."""


def main(arguments: list[str]) -> int:
    """Run the program or the report that the command line names, and return the exit status."""
    match arguments:
        case ["-h" | "--help"]:
            print(USAGE)
            return 0
        case ["report", *rest] if not Path("report").is_file():
            from rushlight.as_torch import _report

            try:
                status = _report.main(rest)
                sys.stdout.flush()
            except BrokenPipeError:  # the reader of the report has closed the pipe
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 1
            return status
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
