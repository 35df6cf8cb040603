"""Signal processing: `rushlight.signal`, which has the windows of torch.signal."""

from __future__ import annotations

from . import windows

__all__ = ["windows"]
