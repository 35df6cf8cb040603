"""The CPU, with the interface of `rushlight.cuda`."""

from __future__ import annotations

from typing import Any

__all__ = ["current_device", "device_count", "is_available", "set_device", "synchronize"]


def is_available() -> bool:
    """Return True: a CPU is always available.

    Example:
        >>> torch.cpu.is_available()
        True
    """
    return True


def device_count() -> int:
    """Return 1: all cores together are one device.

    Example:
        >>> torch.cpu.device_count()
        1
    """
    return 1


def current_device() -> str:
    """Return "cpu".

    Example:
        >>> torch.cpu.current_device()
        'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """No-op: there is one device.

    Example:
        >>> torch.cpu.set_device("cpu")
    """


def synchronize(device: Any = None) -> None:
    """No-op: CPU kernels are synchronous.

    Example:
        >>> torch.cpu.synchronize()
    """
