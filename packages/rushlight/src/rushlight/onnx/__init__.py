"""Models in the ONNX format: the supported names of `torch.onnx`, and `load`. See rushlight_graph.onnx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight_graph import onnx as _onnx
from rushlight_graph.onnx import *  # noqa: F403

__all__ = ["register_custom_op_symbolic"]
__all__ += _onnx.__all__


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """No-op. Some libraries call this function at import, but the operators that they register are not exported.

    Example:
        >>> torch.onnx.register_custom_op_symbolic("library::operator", lambda *args: None, 17)
    """
