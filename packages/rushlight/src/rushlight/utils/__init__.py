"""Utilities, by PyTorch's names: `utils.data`."""

from rushlight.utils import data

__all__ = ["data"]
