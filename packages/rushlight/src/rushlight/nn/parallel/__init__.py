"""Modules over several processes, and `DataParallel`, where there is one device."""

from rushlight.nn.parallel import distributed as distributed
from rushlight.nn.parallel import scatter_gather as scatter_gather
from rushlight_nn import DataParallel
from rushlight_nn.layers.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]
