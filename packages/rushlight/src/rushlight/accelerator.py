"""The device that computes faster than the CPU, whatever it is called: a GPU, where there is one."""

from __future__ import annotations

from typing import Any

import rushlight_core as core
from rushlight import cpu, cuda

__all__ = [
    "current_accelerator",
    "current_device_index",
    "device_count",
    "get_device_module",
    "is_available",
    "synchronize",
]


def get_device_module(device: Any = None) -> Any:
    """The module that is asked about a device: `rushlight.cpu` or `rushlight.cuda`.

    Raises:
        RuntimeError: there is none for such a device.
    """
    kind = core.device(device).type if device is not None else "cuda" if cuda.is_available() else "cpu"
    if kind not in ("cpu", "cuda"):
        raise RuntimeError(f"get_device_module(device): got {device!r}, needs a CPU or a GPU")
    return cpu if kind == "cpu" else cuda


def is_available() -> bool:
    """Whether there is one."""
    return cuda.is_available()


def device_count() -> int:
    """How many there are."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> core.device | None:
    """Its kind; None where there is none."""
    return core.device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """The index of the one that is in use. Raises RuntimeError where there is none."""
    return cuda.current_device()


def synchronize(device: Any = None, /) -> None:
    """Waits until it has done all its work. Raises RuntimeError where there is none."""
    cuda.synchronize(device)
