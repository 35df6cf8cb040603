"""Signal processing, implemented in rushlight_core.signal."""

from rushlight.signal import windows

__all__ = ["windows"]
