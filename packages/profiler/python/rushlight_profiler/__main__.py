"""`python -m rushlight.profiler script.py [arguments]`: run a program under `profile` and print the table."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from .session import profile
from .table import SORT_KEYS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rushlight.profiler",
        usage="%(prog)s [options] script.py [arguments]\n       %(prog)s [options] -m module [arguments]",
        description="Runs a program under the profiler, then prints a table of where its time went.",
    )
    parser.add_argument(
        "--sort-by",
        default="self_cpu_time_total",
        choices=SORT_KEYS,
        help="sort rows by this column, descending",
    )
    parser.add_argument(
        "--row-limit", type=int, default=30, metavar="N", help="number of rows of the table, -1 for all"
    )
    parser.add_argument("--memory", action="store_true", help="also record the tensors' memory")
    parser.add_argument("--shapes", action="store_true", help="a row for each combination of input shapes")
    parser.add_argument("--flops", action="store_true", help="also count floating-point operations")
    parser.add_argument(
        "--trace", metavar="FILE", help="also write a timeline in the format of Chrome traces"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the program is the name of a module")
    parser.add_argument("program", help="a file, or with -m a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    return parser


def main(command: list[str]) -> int:
    """Run the program of the command line and print the table, even if the program raises an exception or exits.

    Return 0, or 2 if the file does not exist. If the program raises an exception, including SystemExit, the exception is
    raised again.
    """
    wanted = _parser().parse_args(command)
    if not wanted.module and not os.path.isfile(wanted.program):
        print(f"rushlight.profiler: there is no file {wanted.program}", file=sys.stderr)
        return 2
    sys.argv = [wanted.program, *wanted.arguments]
    recorded = profile(
        record_shapes=wanted.shapes,
        profile_memory=wanted.memory,
        with_flops=wanted.flops or wanted.sort_by == "flops",
    )
    try:
        with recorded:
            if wanted.module:
                sys.path[0] = os.getcwd()
                runpy.run_module(wanted.program, run_name="__main__", alter_sys=True)
            else:
                sys.path[0] = os.path.dirname(os.path.abspath(wanted.program))
                runpy.run_path(wanted.program, run_name="__main__")
    finally:
        averages = recorded.key_averages(group_by_input_shape=wanted.shapes)
        print(averages.table(sort_by=wanted.sort_by, row_limit=wanted.row_limit))
        if wanted.trace:
            recorded.export_chrome_trace(wanted.trace)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
