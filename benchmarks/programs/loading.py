"""Measure loading a program of 100 MB: CPU time, and the increase of the process's memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .. import process

_LAYERS, _WIDTH = 25, 1000  # of 4 MB each


def write_files(send: process.Send, folder: str) -> None:
    """Write a program of 100 MB and a small one, which is loaded first."""
    import rushlight as torch

    for name, layers, width in (("large.rl", _LAYERS, _WIDTH), ("small.rl", 1, 8)):
        model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))
        with torch.no_grad():
            program = torch.export.export(model, (torch.zeros(1, width),))
        torch.export.save(program, str(Path(folder, name)))
    send(Path(folder, "large.rl").stat().st_size / 1e6)


def in_python(send: process.Send, folder: str) -> None:
    """Measure `rushlight_graph.load`."""
    from rushlight_graph import load

    send(_measured(load, folder))


def in_c(send: process.Send, folder: str) -> None:
    """Measure `rl_program_load`, called as from a program in C."""
    import rushlight_core  # noqa: F401  librushlight.so, which the other library needs

    found = find_spec("rushlight_graph._C")
    if found is None or found.origin is None:
        raise RuntimeError("programs: rushlight-graph is not installed")
    library = ctypes.CDLL(str(Path(found.origin).parent / "lib" / "librushlight_graph.so"))
    library.rl_error_text.restype = ctypes.c_char_p

    def load(path: str) -> ctypes.c_void_p:
        program = ctypes.c_void_p()
        if library.rl_program_load(path.encode(), ctypes.byref(program)) != 0:
            raise RuntimeError(library.rl_error_text().decode())
        return program

    send(_measured(load, folder))


def _measured(load: Callable[[str], Any], folder: str) -> dict[str, float]:
    """Return the CPU milliseconds of a load, and the increase of resident megabytes."""
    load(str(Path(folder, "small.rl")))
    resident = _resident()
    before = time.process_time_ns()
    program = load(str(Path(folder, "large.rl")))
    spent = time.process_time_ns() - before
    grown = _resident() - resident
    del program
    return {"ms": spent / 1e6, "mb": grown / 1e6}


def _resident() -> int:
    """Return the resident bytes of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmRSS")
