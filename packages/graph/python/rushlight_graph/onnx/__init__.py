"""Models in ONNX: `export` writes models, and `load` reads models that use the operators that `export` writes."""

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
    """Read an ONNX model as a program. The model may use the operators that `export` writes.

    Args:
        f: a path, or an open binary file. A model whose tensors are in other files must be loaded by its path; the other
            files must be in the model's folder.

    Raises:
        OnnxLoadError: the file is not a model, or has operators, dtypes or versions other than those that `export` writes.

    Example:
        >>> _ = torch.onnx.export(nn.ReLU(), (torch.ones(3),), "relu.onnx")
        >>> load("relu.onnx").module()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0., 0., 1.])
    """
    from rushlight_graph.onnx import loader  # imported here because it needs numpy, unlike export

    return loader.load(f)
