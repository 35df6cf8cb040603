"""Modules that are sharded over processes. They are not supported.

The classes exist for `isinstance`; creating an instance raises RuntimeError.
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
    """Module whose parameters are sharded over processes, for `isinstance`. Creating one raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import FullyShardedDataParallel
        >>> isinstance(nn.Linear(2, 2), FullyShardedDataParallel)
        False
    """


class FSDPModule(_Absent):
    """Module whose parameters `fully_shard` has sharded over processes, for `isinstance`. Creating one raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import FSDPModule
        >>> isinstance(nn.Linear(2, 2), FSDPModule)
        False
    """


class CPUOffload(_Absent):
    """Setting that keeps sharded parameters on the CPU, for `isinstance`. Creating one raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import CPUOffload
        >>> isinstance(None, CPUOffload)
        False
    """


class MixedPrecision(_Absent):
    """Setting of the dtypes of sharded parameters, for `isinstance`. Creating one raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import MixedPrecision
        >>> isinstance(None, MixedPrecision)
        False
    """


class OffloadPolicy(_Absent):
    """Base class of settings that select where sharded parameters are kept, for `isinstance`.

    Creating one raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import OffloadPolicy
        >>> isinstance(None, OffloadPolicy)
        False
    """


class CPUOffloadPolicy(OffloadPolicy):
    """Setting that keeps sharded parameters on the CPU, for `isinstance`. Creating one raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy
        >>> issubclass(CPUOffloadPolicy, OffloadPolicy)
        True
    """


class MixedPrecisionPolicy(_Absent):
    """Setting of the dtypes of sharded parameters, for `isinstance`. Creating one raises RuntimeError.

    Example:
        >>> from rushlight.distributed.fsdp import MixedPrecisionPolicy
        >>> isinstance(None, MixedPrecisionPolicy)
        False
    """
