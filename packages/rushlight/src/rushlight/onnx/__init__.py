"""Export to ONNX: not there. Programs that ask whether it goes on hear no."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

__all__ = ["OnnxExporterError", "TrainingMode", "export", "is_in_onnx_export", "register_custom_op_symbolic"]


class OnnxExporterError(RuntimeError):
    """An export that failed."""


class TrainingMode(Enum):
    """Whether a model is exported as it trains."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Accepted, as libraries say it when they are imported; nothing is exported."""


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: no."""
    return False


def export(model: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError(
        "onnx.export(): models cannot be exported\nhint: their weights can, as safetensors files: torch.save(state, f)"
    )
