"""oneDNN, by its former name: the convolutions and matrix products of the CPU are its."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import rushlight_core as core
from rushlight.backends._switches import set_switches, switched

enabled = True
deterministic = False
allow_tf32 = True

__all__ = ["allow_tf32", "deterministic", "enabled", "flags", "is_acl_available", "is_available", "set_flags"]


def is_available() -> bool:
    """Whether convolutions and matrix products use it: it may be left out when core is built."""
    return (Path(core.__file__).parent / "lib" / "librushlight_dnnl.so").exists()


def is_acl_available() -> bool:
    """Whether it is built with Arm's library: no, this is x86-64."""
    return False


def set_flags(
    _enabled: bool | None = None, _deterministic: bool | None = None, _allow_tf32: bool | None = None
) -> tuple[Any, ...]:
    """Set the switches that are given; returns what all of them were."""
    return set_switches(
        sys.modules[__name__], enabled=_enabled, deterministic=_deterministic, allow_tf32=_allow_tf32
    )


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True
) -> AbstractContextManager[None]:
    """The switches within a block."""
    return switched(
        sys.modules[__name__], enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32
    )
