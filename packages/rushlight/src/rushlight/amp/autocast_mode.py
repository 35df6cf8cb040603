"""Autocast, by the file that PyTorch has it in."""

from rushlight_core.amp import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)

__all__ = [
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]
