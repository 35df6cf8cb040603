"""Modules in parts over processes: there are none.

The classes are there for `isinstance`; making an instance raises RuntimeError.
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
    """A module in parts over processes."""


class FSDPModule(_Absent):
    """A module in parts over processes."""


class CPUOffload(_Absent):
    """Where parts wait."""


class MixedPrecision(_Absent):
    """The dtypes of parts."""


class OffloadPolicy(_Absent):
    """Where parts wait."""


class CPUOffloadPolicy(OffloadPolicy):
    """Where parts wait."""


class MixedPrecisionPolicy(_Absent):
    """The dtypes of parts."""
