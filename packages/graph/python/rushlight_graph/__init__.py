"""Capture the operators that a model calls as a program, save it in one file, and run it without Python.

`export` captures a module; `save` and `load` write and read a program. The C++ library librushlight_graph and
the tool `rushlight-run` load the same files.
"""

from __future__ import annotations

import rushlight_core as _core  # noqa: F401  first, because it loads librushlight, which this package needs
import rushlight_graph.control_flow  # noqa: F401  records cond, while_loop and scan
from rushlight_graph._C import Graph, Program
from rushlight_graph.dynamic import Dim
from rushlight_graph.exported import ExportedProgram, export, load, register_dataclass, save

__all__ = ["Dim", "ExportedProgram", "Graph", "Program", "export", "load", "register_dataclass", "save"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("rushlight-graph")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
