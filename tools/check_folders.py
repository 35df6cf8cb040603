"""Check the folders of core's C++ files: `python tools/check_folders.py [<build folder of core>]`

* a folder of packages/core/src includes only headers of its own level and below: FOLDERS, from the lowest to the highest;
* the body of an operator is in the file of its family, in the folder of its kind: an operator of ops/joining.yaml of kind
  composite in src/ops/composites/joining.cpp. This is determined from the object files of a build.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "packages" / "core"
# Folders that are compiled for both host and devices, and include only public headers.
ELEMENTS = (
    "ops/cast_element.h",
    "ops/cell.h",
    "ops/element_types.h",
    "ops/functors",
    "ops/reducers",
    "cpu/vector_",
    "cpu/capability.h",
)
# Folders, and the folders from which each may include headers.
FOLDERS = {
    "elements": set[str](),
    "runtime": {"dispatch"},
    "tensor": {"runtime"},
    "dispatch": {"tensor"},
    "cpu": {"elements", "runtime"},
    "sparse": {"runtime", "tensor", "dispatch", "ops"},  # its stage is above ops, and its parts are below
    "ops": {"elements", "runtime", "tensor", "dispatch", "cpu", "sparse"},
    "collective": {"runtime"},
    "cuda": {"elements"},  # a plug-in, which does not link core
    "c": {"runtime", "tensor", "dispatch"},
    "python": {"elements", "runtime", "tensor", "dispatch", "cpu", "ops"},
}
SUFFIXES = (".h", ".cpp", ".cuh", ".cu")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def folder_of(path: str) -> str:
    """Return the folder of FOLDERS that a path below src/ belongs to; empty for other paths, such as public headers."""
    if path.startswith(ELEMENTS):
        return "elements"
    first = path.partition("/")[0]
    return first if first in FOLDERS and "/" in path else ""


def wrong_includes(src: Path) -> Iterator[str]:
    """Yield a description of each include of a header at a higher level."""
    for path in sorted(path for path in src.rglob("*") if path.suffix in SUFFIXES):
        own = folder_of(path.relative_to(src).as_posix())
        for included in INCLUDE.findall(path.read_text()):
            other = folder_of(included)
            if own and other and other != own and other not in FOLDERS[own]:
                yield f"{path.relative_to(src)} includes {included}: {own} may not look at {other}"


def misplaced(bodies: Iterable[tuple[str, str, str]], defined: dict[str, set[str]]) -> Iterator[str]:
    """Yield a description of each (operator, function, file) whose file does not define the function."""
    for operator, function, file in bodies:
        if function not in defined.get(file, set()):
            found = ", ".join(sorted(name for name, functions in defined.items() if function in functions))
            yield f"{operator}: {function} belongs into {file}, but is in {found or 'no file of src/ops'}"


def defined_functions(build: Path) -> dict[str, set[str]]:
    """Return the functions that each source below src/ops defines: {"src/ops/rules/loss.cpp": {"rules::nll_loss"}}."""
    defined = {}
    for path in build.rglob("src/ops/*/*.cpp.o"):
        command = ["nm", "-C", "--defined-only", "--extern-only", str(path)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        names = (re.match(r"[0-9a-f]+ \w rushlight::(\w+::\w+)(?:\[abi:\w+\])?\(", line) for line in lines)
        source = path.as_posix()[path.as_posix().rindex("src/ops/") :].removesuffix(".o")
        defined[source] = {match.group(1) for match in names if match}
    return defined


def bodies() -> list[tuple[str, str, str]]:
    """Return, for each operator with a hand-written body, its name, the function, and the file that must contain it."""
    sys.path.insert(0, str(CORE))  # the generator of this checkout, which need not be installed
    namespaces = importlib.import_module("codegen.emit_bodies").BODIES
    ops = importlib.import_module("codegen.loader").load_ops()
    return [
        (op.name, f"{namespaces[op.kind][0]}::{op.body_name}", op.body_file)
        for op in ops
        if op.kind in namespaces
    ]


def main() -> int:
    wrong = list(wrong_includes(CORE / "src"))
    for build in sys.argv[1:]:
        wrong += misplaced(bodies(), defined_functions(Path(build)))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
