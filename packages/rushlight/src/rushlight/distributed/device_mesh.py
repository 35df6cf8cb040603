"""Meshes of devices that belong to several processes. They are not supported.

The classes exist for `isinstance`; creating an instance raises RuntimeError.
"""

from rushlight.distributed._absent import Absent as _Absent
from rushlight.distributed._absent import refused as _refused

__all__ = ["DeviceMesh", "init_device_mesh"]

init_device_mesh = _refused("init_device_mesh")


class DeviceMesh(_Absent):
    """Grid of devices of several processes, for `isinstance`. Not supported: creating one raises RuntimeError.

    Example:
        >>> from rushlight.distributed.device_mesh import DeviceMesh
        >>> DeviceMesh("cpu", [0, 1])
        Traceback (most recent call last):
            ...
        RuntimeError: distributed.DeviceMesh(): is not supported
    """
