"""The device that computes faster than the CPU, whatever it is called: a GPU, where there is one."""

from __future__ import annotations

from typing import Any

import rushlight_core as core
from rushlight import cpu, cuda
from rushlight_core import _streams, devices

__all__ = [
    "current_accelerator",
    "current_device_index",
    "current_stream",
    "device_count",
    "get_device_module",
    "is_available",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def get_device_module(device: Any = None) -> Any:
    """Return the module that is asked about a device: `rushlight.cpu` or `rushlight.cuda`.

    Raises:
        RuntimeError: there is none for such a device.
    """
    kind = core.device(device).type if device is not None else "cuda" if cuda.is_available() else "cpu"
    if kind not in ("cpu", "cuda"):
        raise RuntimeError(f"get_device_module(device): got {device!r}, needs a CPU or a GPU")
    return cpu if kind == "cpu" else cuda


def _kind() -> str:
    """Its type: CUDA before that of another backend; "" where there is none."""
    return "cuda" if cuda.is_available() else core._C._plugin_device()


def _need(function: str) -> str:
    if kind := _kind():
        return kind
    raise RuntimeError(f"accelerator.{function}(): there is no accelerator\nhint: tensors are on the CPU")


def _device(function: str, device: Any = None) -> core.device:
    kind = _need(function)
    if isinstance(device, int):
        return core.device(f"{kind}:{device}")
    found = core.device(kind if device is None else device)
    if found.type != kind:
        raise ValueError(f"accelerator.{function}(device): got {device!r}, needs a device of type {kind!r}")
    return found if found.index is not None else devices.current_device(kind)


def is_available() -> bool:
    """Return whether there is one."""
    return _kind() != ""


def device_count() -> int:
    """Return how many there are."""
    kind = _kind()
    return devices.device_count(kind) if kind else 0


def current_accelerator(check_available: bool = False) -> core.device | None:
    """Its kind; None where there is none."""
    kind = _kind()
    return core.device(kind) if kind else None


def current_device_index() -> int:
    """Return the index of the one that is in use. Raises RuntimeError where there is none."""
    return devices.current_device(_need("current_device_index")).index or 0


def set_device_index(device: Any, /) -> None:
    """Make it the one that is in use. Raises RuntimeError where there is none."""
    devices.set_device(_device("set_device_index", device))


def current_stream(device: Any = None, /) -> core.Stream:
    """Return the stream on which this thread queues work for it. Raises RuntimeError where there is none."""
    return _streams.current_stream(_device("current_stream", device))


def set_stream(stream: core.Stream) -> None:
    """Queues this thread's work for the stream's device there, and makes that device the one in use."""
    devices.set_device(stream.device)
    _streams.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait until the device has done all its work. Raises RuntimeError where there is none."""
    devices.synchronize(_device("synchronize", device))
