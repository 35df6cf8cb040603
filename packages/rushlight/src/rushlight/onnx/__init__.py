"""Models in ONNX: what `torch.onnx` has, as far as it is here, and `load`. See rushlight_graph.onnx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight_graph.onnx import OnnxExporterError as OnnxExporterError
from rushlight_graph.onnx import OnnxLoadError as OnnxLoadError
from rushlight_graph.onnx import ONNXProgram as ONNXProgram
from rushlight_graph.onnx import OperatorExportTypes as OperatorExportTypes
from rushlight_graph.onnx import TrainingMode as TrainingMode
from rushlight_graph.onnx import export as export
from rushlight_graph.onnx import is_in_onnx_export as is_in_onnx_export
from rushlight_graph.onnx import load as load

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OnnxLoadError",
    "OperatorExportTypes",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
    "load",
    "register_custom_op_symbolic",
]


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Accepted, as libraries call it when they are imported; operators of libraries are not exported."""
