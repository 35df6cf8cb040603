"""Build the site: `python -m docsite --out site --work FOLDER`."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from sphinx.cmd.build import build_main

from .checks import problems
from .pages import REFERENCE, PageError, Stage
from .reference import Reference

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "site", help="the folder of the site, which is replaced"
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="a folder for what Sphinx reads, which is replaced"
    )
    arguments = parser.parse_args()
    started = time.monotonic()

    for folder in (arguments.work, arguments.out):
        shutil.rmtree(folder, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    reference = Reference()
    reference.write(arguments.work / REFERENCE)
    stage = Stage(ROOT, arguments.work, reference.names, reference.index(REFERENCE))
    try:
        stage.write()
    except PageError as error:
        print(error, file=sys.stderr)
        return 1
    options = ["-q", "-W", "--keep-going", "-j", "2", "-b", "html", "-c", str(HERE)]
    options += ["-d", str(arguments.work / "_doctrees"), "-D", "exclude_patterns=_extra"]
    options += ["-D", f"html_extra_path={arguments.work / '_extra'}"]
    if status := build_main([*options, str(arguments.work), str(arguments.out)]):
        return int(status)
    found = problems(arguments.out)
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        pages = sum(1 for _ in arguments.out.rglob("*.html"))
        print(
            f"{arguments.out / 'index.html'}: {pages} pages, {len(reference.names)} names in the reference;"
            f" {time.monotonic() - started:.0f} s"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
