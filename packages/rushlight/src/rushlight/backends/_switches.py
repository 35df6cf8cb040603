"""Modules whose attributes are switches, as in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


def set_switches(module: ModuleType, **values: Any) -> tuple[Any, ...]:
    """Set the switches whose values are not None, and return the previous values of all switches in `values`."""
    before = tuple(getattr(module, name) for name in values)
    for name, value in values.items():
        if value is not None:
            setattr(module, name, value)
    return before


@contextmanager
def switched(module: ModuleType, **values: Any) -> Iterator[None]:
    """Set the switches within a block."""
    before = dict(zip(values, set_switches(module, **values), strict=True))
    try:
        yield
    finally:
        set_switches(module, **before)
