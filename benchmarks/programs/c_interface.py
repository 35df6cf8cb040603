"""Measure the cost of calls through the C interface: compile and run c_calls.cpp."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .. import process

SOURCE = Path(__file__).parents[1] / "c_calls.cpp"


def over_typed_call(send: process.Send) -> None:
    """Measure the nanoseconds of `rl_call` relative to those of `ops::add`."""
    import rushlight_core

    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise RuntimeError("programs: no C++ compiler was found\nhint: install c++, or set the variable CXX")
    (core,) = [folder for folder in map(Path, rushlight_core.__path__) if (folder / "include").is_dir()]
    with tempfile.TemporaryDirectory() as folder:
        built = str(Path(folder, "c_calls"))
        command = [compiler, "-O2", "-std=c++20", str(SOURCE), "-o", built, f"-I{core / 'include'}"]
        command += [f"-L{core / 'lib'}", "-lrushlight", f"-Wl,-rpath,{core / 'lib'}"]
        subprocess.run(command, check=True)
        text = subprocess.run([built], check=True, capture_output=True, text=True).stdout
    send(nanoseconds_over(text))


def nanoseconds_over(text: str) -> float:
    """Return the figure of `rl_call` in the program's output."""
    for part in text.split(";"):
        if part.split()[:1] == ["rl_call"]:
            return float(part.rsplit("+", 1)[1])
    raise RuntimeError(f"programs: c_calls printed no figure for rl_call, but {text!r}")
