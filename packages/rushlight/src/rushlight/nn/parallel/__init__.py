"""Modules over several devices: `DataParallel`, where there is one device."""

from rushlight.nn.parallel.distributed import DistributedDataParallel
from rushlight_nn import DataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]
