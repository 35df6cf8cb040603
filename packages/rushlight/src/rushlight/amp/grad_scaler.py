"""The scaler of gradients, by the file that PyTorch has it in."""

from rushlight_core.amp import (
    GradScaler,
)

__all__ = [
    "GradScaler",
]
