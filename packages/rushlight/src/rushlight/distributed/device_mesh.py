"""Meshes of devices of several processes, which are not supported.

The class exists so that programs can pass it to `isinstance`; creating an instance raises RuntimeError.
"""

from rushlight.distributed._absent import Absent as _Absent
from rushlight.distributed._absent import refused as _refused

__all__ = ["DeviceMesh", "init_device_mesh"]

init_device_mesh = _refused("init_device_mesh")


class DeviceMesh(_Absent):
    """A grid of devices of several processes, which is not supported. Creating an instance raises RuntimeError.

    Example:
        >>> from rushlight.distributed.device_mesh import DeviceMesh
        >>> DeviceMesh("cpu", [0, 1])
        Traceback (most recent call last):
            ...
        RuntimeError: distributed.DeviceMesh(): is not supported
    """
