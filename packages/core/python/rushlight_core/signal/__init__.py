"""Signal processing: `rushlight.signal`, which contains the windows of torch.signal."""

from __future__ import annotations

from . import windows

__all__ = ["windows"]
