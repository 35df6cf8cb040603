"""Write docs/names.md, or check it: `python -m compare_names`."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from compare_names.binding import Row, compare
from compare_names.documented import MODULES, members
from compare_names.page import page
from compare_names.presence import AREAS, OUTSIDE, Absence, absences
from compare_names.signatures import Stubs

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "names.md"


def rows_of_libraries() -> tuple[dict[str, list[Row]], str, dict[str, Absence]]:
    """Return the rows of every module, PyTorch's version, and the absent names, from the installed libraries."""
    import torch

    import rushlight
    import rushlight_core
    from rushlight_core.codegen.loader import load_ops

    folder = Path(torch.__file__).parent / "_C"
    theirs = Stubs(folder / "_VariableFunctions.pyi", folder / "__init__.pyi")
    # Generated files of an editable package are in another folder than its sources.
    generated = (Path(folder) / "_C.pyi" for folder in rushlight_core.__path__)
    ours = Stubs(next(path for path in generated if path.exists()))
    aliases: dict[str, dict[str, str]] = {}
    for op in load_ops():
        aliases.setdefault(op.base, {}).update(op.aliases)
    rows = {}
    for path in MODULES:
        documented = members(torch, path, theirs, {})
        rows[path] = compare(documented, members(rushlight, path, ours, aliases, documented))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about deprecated modules and names
        absent = absences(torch, rushlight, AREAS, OUTSIDE)
    return rows, torch.__version__.partition("+")[0], absent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare the names of PyTorch and rushlight.")
    parser.add_argument(
        "--check", action="store_true", help="fail if the page is not up to date; write nothing"
    )
    options = parser.parse_args(arguments)
    text = page(*rows_of_libraries())
    if options.check:
        if not TABLE.exists() or TABLE.read_text() != text:
            print(f"{TABLE.relative_to(ROOT)} is not up to date: run `nox -s names`", file=sys.stderr)
            return 1
        return 0
    TABLE.write_text(text)
    print(f"{TABLE.relative_to(ROOT)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
