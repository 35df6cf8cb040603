"""`DistributedDataParallel`, which trains a module with several processes, and `DataParallel` for one device."""

from rushlight.nn.parallel import distributed as distributed
from rushlight.nn.parallel import scatter_gather as scatter_gather
from rushlight.nn.parallel.data_parallel import DataParallel, data_parallel
from rushlight_nn.layers.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
