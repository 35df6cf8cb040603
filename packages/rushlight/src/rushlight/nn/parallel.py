"""Modules over several devices: `DataParallel`, where there is one device."""

from rushlight_nn import DataParallel

__all__ = ["DataParallel"]
