"""Linear algebra: `rushlight.linalg`, over the last dimensions of tensors, whose other dimensions are batches."""

from __future__ import annotations

from ._C import linalg_cross as cross

__all__ = ["cross"]
