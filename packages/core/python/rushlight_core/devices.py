"""Functions that load device backends, count and select devices, and wait for the work of devices.

A backend is a shared library that implements the interface of `rushlight/backend.h`. `load_backend` loads a
backend from a path. An installed package can provide a backend in the entry point group `rushlight.backends`;
the backend is loaded when a program first uses its device type. The entry point is named after the device
type ("cuda"). The entry point refers to a variable that contains the path of the library, or to a function
that returns the path.
"""

from __future__ import annotations

import os

from . import _C
from ._C import device as _device

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any

    DeviceLike = str | int | _device

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "find_backend",
    "get_device_properties",
    "is_current_stream_capturing",
    "load_backend",
    "mem_get_info",
    "memory_snapshot",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device",
    "set_memory_limit",
    "synchronize",
]

GROUP = "rushlight.backends"

_missing: set[str] = set()
_failed: dict[str, RuntimeError] = {}


def load_backend(path: str | os.PathLike[str]) -> str:
    """Load the device backend from a shared library, and return its name, which is the device type.

    A process can load the CUDA backend and one other backend. Loading the same backend again does nothing.

    Args:
        path: the path of the library.

    Raises:
        RuntimeError: the library cannot be opened, is not a backend, was built for another version of the interface, or
            finds no device.

    Example::

        load_backend("librushlight_mine.so")  # "mine"
        torch.ones(2, device="mine")
    """
    return _C._load_backend(path)


def find_backend(name: str) -> bool:
    """Load the backend `name` if an installed package provides it, and return whether a backend was loaded.

    Args:
        name: the name of the backend, which is its device type.

    Raises RuntimeError if the backend is installed but cannot be used.

    Example:
        >>> find_backend("no_such_device")
        False
    """
    # Programs ask for devices many times, and a search takes milliseconds.
    if name in _missing:
        return False
    if name in _failed:
        raise _failed[name].with_traceback(None)
    from ._entry_points import load_entry_point

    try:
        offered = load_entry_point(GROUP, name)
        if offered is None:
            _missing.add(name)
            return False
        load_backend(offered() if callable(offered) else offered)
    except RuntimeError as error:
        _failed[name] = error
        raise
    return True


def device_count(type: DeviceLike) -> int:
    """Return the number of devices of a type, such as "cpu", "cuda" or a backend's name.

    The number is 0 if no such backend is installed, or if the backend does not work on this machine.

    Example:
        >>> device_count("cpu")
        1
    """
    return _C._device_count(type)


def current_device(type: DeviceLike) -> _device:
    """Return the current device of the given type for this thread. It is initially the device with index 0.

    Example:
        >>> current_device("cpu")
        device(type='cpu')
    """
    return _C._current_device(type)


def set_device(device: DeviceLike) -> None:
    """Set the current device of this thread. A device type without an index, such as "cuda", refers to this device.

    Args:
        device: the device.

    Raises RuntimeError if the device does not exist.

    Example:
        >>> set_device("cpu")
    """
    _C._set_device(device)


def synchronize(device: DeviceLike) -> None:
    """Wait until a device has done all its work, and raise the errors of that work. The CPU never has pending work.

    Example:
        >>> synchronize("cpu")  # CPU kernels are synchronous
    """
    _C._synchronize(device)


def is_current_stream_capturing(device: DeviceLike) -> bool:
    """Return whether the work that this thread queues on a device is being captured in a graph instead of executed.

    Example:
        >>> is_current_stream_capturing("cpu")
        False
    """
    return _C._is_capturing(device)


def get_device_properties(device: DeviceLike) -> DeviceProperties:
    """Return the properties of a device.

    Args:
        device: the device.

    Raises:
        NotImplementedError: the backend does not report this information.
        RuntimeError: the device is the CPU, or another device that has no backend.

    Example::

        get_device_properties("cuda:0").total_memory  # bytes
    """
    return DeviceProperties(_C._device_properties(device))


class DeviceProperties:
    """The properties of a device, under PyTorch's names. Unknown values are 0, and sizes are in bytes.

    Attributes:
        name: the name given by the manufacturer.
        major, minor: the version of the compute capability. total_memory, multi_processor_count,
            max_threads_per_multi_processor, warp_size, regs_per_multiprocessor: see
            the properties of the same names in CUDA.
        L2_cache_size, shared_memory_per_block, shared_memory_per_block_optin, shared_memory_per_multiprocessor: the sizes of
            the L2 cache and of shared memory.
        is_integrated: whether the GPU shares the memory of the host.
        is_multi_gpu_board: whether the board has several GPUs.
        uuid: a `uuid.UUID`.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    max_threads_per_multi_processor: int
    warp_size: int
    regs_per_multiprocessor: int
    is_integrated: bool
    is_multi_gpu_board: bool
    L2_cache_size: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    uuid: Any

    def __init__(self, found: dict[str, Any]) -> None:
        from uuid import UUID  # this import takes longer than the import of this package

        self.__dict__.update(found, uuid=UUID(bytes=found["uuid"]))

    def __repr__(self) -> str:
        return (
            f"DeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"uuid={self.uuid}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def mem_get_info(device: DeviceLike) -> tuple[int, int]:
    """Return the free and the total memory of a device, in bytes.

    Args:
        device: the device.

    Raises:
        NotImplementedError: the backend does not report this information.
        RuntimeError: the device is the CPU, or another device that has no backend.

    Example::

        free, total = mem_get_info("cuda:0")
    """
    return _C._memory_info(device)


def memory_stats(device: DeviceLike) -> dict[str, int]:
    """Return statistics of a device's allocator: bytes in use, reserved bytes, the peaks of both, and counts of calls.

    Args:
        device: the device.

    Raises:
        NotImplementedError: the backend of the device uses its own allocator.
        RuntimeError: the device is the CPU, or another device that has no backend.

    Example::

        memory_stats("cuda:0")["allocated_bytes_peak"]
    """
    return _C._memory_stats(device)


def reset_peak_memory_stats(device: DeviceLike) -> None:
    """Reset the peaks in `memory_stats` to the current values.

    Args:
        device: the device.

    Raises:
        NotImplementedError: the backend of the device uses its own allocator.
        RuntimeError: the device is the CPU, or another device that has no backend.

    Example::

        reset_peak_memory_stats("cuda:0")
        model(x).sum().backward()
        memory_stats("cuda:0")  # the peaks of this step
    """
    _C._reset_peak_memory_stats(device)


def memory_snapshot(device: DeviceLike) -> str:
    """Return the segments and blocks of a device's memory as JSON, for tools that visualise memory usage.

    Args:
        device: the device.

    Raises:
        NotImplementedError: the backend of the device uses its own allocator.
        RuntimeError: the device is the CPU, or another device that has no backend.

    Example::

        import json
        segments = json.loads(memory_snapshot("cuda:0"))
    """
    return _C._memory_snapshot(device)


def empty_cache(device: DeviceLike) -> None:
    """Wait for the streams whose work still uses cached memory of a device, then free the cached memory.

    Args:
        device: the device.

    Raises:
        NotImplementedError: the backend of the device uses its own allocator.
        RuntimeError: the device is the CPU, or another device that has no backend.

    Example::

        del x
        empty_cache("cuda:0")
    """
    _C._empty_cache(device)


def set_memory_limit(device: DeviceLike, nbytes: int) -> int:
    """Limit the number of bytes that the allocator reserves on a device, and return the previous limit.

    Args:
        device: the device.
        nbytes: the limit; 0 for no limit.

    Raises:
        TypeError: `nbytes` is not an int.
        ValueError: `nbytes` is negative or larger than 2^64 - 1.
        NotImplementedError: the backend of the device uses its own allocator.
        RuntimeError: the device is the CPU, or another device that has no backend.

    Example::

        set_memory_limit("cuda:0", 4 << 30)  # at most 4 GiB
    """
    return _C._set_memory_limit(device, nbytes)
