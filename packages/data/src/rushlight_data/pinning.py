"""Functions that copy batches to page-locked memory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import rushlight_core as core


def should_pin(loader: Any) -> bool:
    """Return whether to pin the loader's batches. Warn if pinning is requested, but no device supports it."""
    if not loader.pin_memory:
        return False
    if memory_can_be_pinned():
        return True
    warnings.warn("DataLoader(pin_memory): no device that pins memory is available", stacklevel=3)
    return False


def memory_can_be_pinned() -> bool:
    """Return whether there is a device that copies batches from page-locked memory."""
    return core._C._pinning_device() != ""


def pin(data: Any, device: str = "") -> Any:
    """Return the batch with its tensors copied to page-locked memory, at any nesting depth.

    If an object that is not a tensor has a method `pin_memory`, the result of this method replaces the object."""
    if isinstance(data, core.Tensor):
        return data.pin_memory(device) if device else data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        pinned = {key: pin(value, device) for key, value in data.items()}
        return pinned if type(data) is dict else _like(data, pinned)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin(value, device) for value in data))
    if isinstance(data, Sequence):
        items = [pin(value, device) for value in data]
        return items if type(data) is list else _like(data, items)
    return data


def _like(data: Any, values: Any) -> Any:
    try:
        return type(data)(values)
    except TypeError:
        return values
