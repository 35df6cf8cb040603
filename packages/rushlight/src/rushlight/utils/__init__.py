"""Utilities, by PyTorch's names: `utils.data`, `utils.checkpoint`, `utils.dlpack`."""

from rushlight.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]
