"""Modules over several processes, and `DataParallel`, where there is one device."""

from rushlight_nn import DataParallel, DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]
