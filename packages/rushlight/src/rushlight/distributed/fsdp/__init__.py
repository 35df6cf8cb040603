"""Fully sharded data parallelism, which is not supported.

The classes exist so that programs can pass them to `isinstance`; creating an instance raises RuntimeError.
"""

from rushlight.distributed._absent import Absent as _Absent
from rushlight.distributed._absent import refused as _refused

__all__ = [
    "CPUOffload",
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullyShardedDataParallel",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "fully_shard",
]

fully_shard = _refused("fsdp.fully_shard")


class FullyShardedDataParallel(_Absent):
    """A module whose parameters are sharded across processes. Not supported: creating an instance raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import FullyShardedDataParallel
        >>> isinstance(nn.Linear(2, 2), FullyShardedDataParallel)
        False
    """


class FSDPModule(_Absent):
    """A module whose parameters `fully_shard` has sharded across processes.

    Not supported: creating an instance raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import FSDPModule
        >>> isinstance(nn.Linear(2, 2), FSDPModule)
        False
    """


class CPUOffload(_Absent):
    """A setting that keeps sharded parameters on the CPU. Not supported: creating an instance raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import CPUOffload
        >>> isinstance(None, CPUOffload)
        False
    """


class MixedPrecision(_Absent):
    """A setting that selects the dtypes of sharded parameters. Not supported: creating an instance raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import MixedPrecision
        >>> isinstance(None, MixedPrecision)
        False
    """


class OffloadPolicy(_Absent):
    """The base class of settings that select where sharded parameters are kept.

    Not supported: creating an instance raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import OffloadPolicy
        >>> isinstance(None, OffloadPolicy)
        False
    """


class CPUOffloadPolicy(OffloadPolicy):
    """A setting that keeps sharded parameters on the CPU. Not supported: creating an instance raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy
        >>> issubclass(CPUOffloadPolicy, OffloadPolicy)
        True
    """


class MixedPrecisionPolicy(_Absent):
    """A setting that selects the dtypes of sharded parameters. Not supported: creating an instance raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import MixedPrecisionPolicy
        >>> isinstance(None, MixedPrecisionPolicy)
        False
    """
