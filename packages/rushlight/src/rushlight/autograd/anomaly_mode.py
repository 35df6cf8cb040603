"""Anomaly mode, by the file that PyTorch has it in."""

from rushlight_autograd import (
    detect_anomaly,
    set_detect_anomaly,
)

__all__ = [
    "detect_anomaly",
    "set_detect_anomaly",
]
