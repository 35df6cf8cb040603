"""Tensors in parts over processes: there are none.

The classes are there for `isinstance`; making an instance raises RuntimeError.
"""

from rushlight.distributed._absent import Absent as _Absent

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard"]


class DTensor(_Absent):
    """A tensor in parts over processes."""


class Placement(_Absent):
    """How a tensor lies over processes."""


class Shard(_Absent):
    """In parts along a dimension."""


class Replicate(_Absent):
    """Whole in each process."""


class Partial(_Absent):
    """As summands."""


class DeviceMesh(_Absent):
    """Devices of several processes."""
