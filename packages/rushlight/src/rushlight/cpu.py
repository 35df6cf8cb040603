"""The CPU, by the questions that are asked of GPUs."""

from __future__ import annotations

from typing import Any

__all__ = ["current_device", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """Whether there is one: yes."""
    return True


def device_count() -> int:
    """How many there are: one."""
    return 1


def current_device() -> str:
    """The one in use: "cpu"."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Waits until it has done all its work, which it has."""
