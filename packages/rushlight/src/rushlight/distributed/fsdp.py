"""Modules in parts over processes: there are none.

The classes are there for `isinstance`; making an instance raises RuntimeError.
"""

from rushlight.distributed._absent import Absent as _Absent

__all__ = ["CPUOffload", "FSDPModule", "FullyShardedDataParallel", "MixedPrecision"]


class FullyShardedDataParallel(_Absent):
    """A module in parts over processes."""


class FSDPModule(_Absent):
    """A module in parts over processes."""


class CPUOffload(_Absent):
    """Where parts wait."""


class MixedPrecision(_Absent):
    """The dtypes of parts."""
