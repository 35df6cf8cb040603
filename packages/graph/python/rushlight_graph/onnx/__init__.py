"""Models in ONNX: `export` writes one, `load` reads what `export` writes."""

from __future__ import annotations

import os
from typing import IO

from rushlight_graph.exported import ExportedProgram
from rushlight_graph.onnx.exporter import (
    OnnxExporterError,
    OnnxLoadError,
    ONNXProgram,
    OperatorExportTypes,
    TrainingMode,
    export,
    is_in_onnx_export,
)

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OnnxLoadError",
    "OperatorExportTypes",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
    "load",
]


def load(f: str | os.PathLike[str] | IO[bytes]) -> ExportedProgram:
    """Read a model in ONNX as a program: one of the operators that `export` writes.

    Args:
        f: a path, beside which tensors in other files are looked for, or an open binary file.

    Raises:
        OnnxLoadError: the file is no model, or has operators, dtypes or versions other than those that `export` writes.
    """
    from rushlight_graph.onnx import loader  # it needs numpy, which export does not

    return loader.load(f)
