"""The command `rushlight-run`: replace this process by the executable `rushlight-run`, which needs no Python."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn


def program() -> Path:
    """Return the path of the executable."""
    library = find_spec("rushlight_graph._C")  # in an editable install, not in the folder of this file
    if library is None or library.origin is None:
        raise ImportError("rushlight-graph is installed without its module _C")
    return Path(library.origin).parent / "bin" / "rushlight-run"


def environment() -> dict[str, str]:
    """Return environment variables with which the executable finds the shared library of rushlight_core."""
    core = find_spec("rushlight_core")
    folders = [
        str(Path(folder) / "lib") for folder in (core.submodule_search_locations if core else None) or ()
    ]
    before = os.environ.get("LD_LIBRARY_PATH")
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join([*folders, *([before] if before else [])])}


def main() -> NoReturn:
    """Replace this process by the executable."""
    path = str(program())
    os.execve(path, [path, *sys.argv[1:]], environment())
