"""Utilities, by PyTorch's names: `utils.data`, `utils.checkpoint`."""

from rushlight.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
