"""Devices of several processes: there are none.

The classes are there for `isinstance`; making an instance raises RuntimeError.
"""

from rushlight.distributed._absent import Absent as _Absent

__all__ = ["DeviceMesh"]


class DeviceMesh(_Absent):
    """Devices of several processes."""
