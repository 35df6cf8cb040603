"""The accelerator: a device of any type that computes faster than the CPU, such as a GPU."""

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
    """Return the module for a device type: `rushlight.cpu` or `rushlight.cuda`.

    Args:
        device: a device or its name; by default a CUDA device, or the CPU if `torch.cuda.is_available()` is False.

    Raises:
        RuntimeError: the device is neither a CPU nor a GPU.

    Example:
        >>> torch.accelerator.get_device_module("cpu").device_count()
        1
    """
    kind = core.device(device).type if device is not None else "cuda" if cuda.is_available() else "cpu"
    if kind not in ("cpu", "cuda"):
        raise RuntimeError(f"get_device_module(device): must be a CPU or a GPU, got {device!r}")
    return cpu if kind == "cpu" else cuda


def _kind() -> str:
    """Return the accelerator's device type, or "" if there is none. CUDA takes precedence over other backends."""
    return "cuda" if cuda.is_available() else core._C._plugin_device()


def _need(function: str) -> str:
    if kind := _kind():
        return kind
    raise RuntimeError(
        f"accelerator.{function}(): there is no accelerator\nhint: check accelerator.is_available() first"
    )


def _device(function: str, device: Any = None) -> core.device:
    kind = _need(function)
    if isinstance(device, int):
        return core.device(f"{kind}:{device}")
    found = core.device(kind if device is None else device)
    if found.type != kind:
        raise ValueError(f"accelerator.{function}(device): must be a device of type {kind!r}, got {device!r}")
    return found if found.index is not None else devices.current_device(kind)


def is_available() -> bool:
    """Return whether there is an accelerator.

    Example:
        >>> device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else "cpu"
        >>> torch.zeros(2, device=device).sum().item()
        0.0
    """
    return _kind() != ""


def device_count() -> int:
    """Return the number of accelerators.

    Example:
        >>> (torch.accelerator.device_count() > 0) == torch.accelerator.is_available()
        True
    """
    kind = _kind()
    return devices.device_count(kind) if kind else 0


def current_accelerator(check_available: bool = False) -> core.device | None:
    """Return the type of accelerator as a device without an index, or None if there is no accelerator.

    Args:
        check_available: has no effect, because only an available accelerator is returned.

    Example:
        >>> (torch.accelerator.current_accelerator() is None) != torch.accelerator.is_available()
        True
    """
    kind = _kind()
    return core.device(kind) if kind else None


def current_device_index() -> int:
    """Return the index of the current accelerator.

    Raises:
        RuntimeError: there is no accelerator.

    Example::

        torch.accelerator.set_device_index(1)
        torch.accelerator.current_device_index()  # 1
    """
    return devices.current_device(_need("current_device_index")).index or 0


def set_device_index(device: Any, /) -> None:
    """Select the current accelerator.

    Args:
        device: an index, or a device.

    Raises:
        RuntimeError: there is no accelerator, or none with this index.

    Example::

        torch.accelerator.set_device_index(0)
    """
    devices.set_device(_device("set_device_index", device))


def current_stream(device: Any = None, /) -> core.Stream:
    """Return the stream to which the calling thread submits work for a device.

    Args:
        device: an index or a device; by default the current accelerator.

    Raises:
        RuntimeError: there is no accelerator.

    Example::

        torch.accelerator.current_stream().synchronize()
    """
    return _streams.current_stream(_device("current_stream", device))


def set_stream(stream: core.Stream) -> None:
    """Select the stream to which the calling thread submits work, and make the stream's device the current accelerator.

    Args:
        stream: a stream of an accelerator.

    Raises:
        RuntimeError: the device cannot be selected.

    Example::

        torch.accelerator.set_stream(torch.Stream("cuda"))
    """
    devices.set_device(stream.device)
    _streams.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait until a device has finished all work that was submitted to it.

    Args:
        device: an index or a device; by default the current accelerator.

    Raises:
        RuntimeError: there is no accelerator.

    Example::

        torch.accelerator.synchronize()
    """
    devices.synchronize(_device("synchronize", device))
