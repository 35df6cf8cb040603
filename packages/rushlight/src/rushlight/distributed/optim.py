"""Optimizers over several processes: there are none.

The classes are there for `isinstance`; making an instance raises RuntimeError.
"""

from rushlight.distributed._absent import Absent as _Absent

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(_Absent):
    """An optimizer whose state is in parts over processes."""
