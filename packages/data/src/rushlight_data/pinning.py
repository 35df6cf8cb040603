"""Copying batches to page-locked memory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import rushlight_core as core


def should_pin(loader: Any) -> bool:
    """Whether the loader's batches are to be pinned; warns where they cannot be."""
    if not loader.pin_memory:
        return False
    if gpu_is_available():
        return True
    warnings.warn("DataLoader(pin_memory): there is no GPU, so batches are not pinned", stacklevel=3)
    return False


def gpu_is_available() -> bool:
    """Whether there is a GPU, and core can use it."""
    cuda = getattr(core, "cuda", None)
    return cuda is not None and bool(cuda.is_available())


def pin(data: Any) -> Any:
    """The same batch with its tensors in page-locked memory, at any depth; objects with a `pin_memory` method
    decide themselves."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        pinned = {key: pin(value) for key, value in data.items()}
        return pinned if type(data) is dict else _like(data, pinned)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(pin, data))
    if isinstance(data, Sequence):
        items = [pin(value) for value in data]
        return items if type(data) is list else _like(data, items)
    return data


def _like(data: Any, values: Any) -> Any:
    try:
        return type(data)(values)
    except TypeError:
        return values
