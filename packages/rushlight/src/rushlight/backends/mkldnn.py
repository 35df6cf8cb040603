"""oneDNN, by its former name: it computes convolutions on the CPU."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import rushlight_core as core
from rushlight.backends._switches import set_switches, switched

enabled = True
deterministic = False
allow_tf32 = True

__all__ = ["allow_tf32", "deterministic", "enabled", "flags", "is_acl_available", "is_available", "set_flags"]


def is_available() -> bool:
    """Return whether convolutions can be computed by it.

    They cannot where core was built without it, or where RUSHLIGHT_COMPUTE is "plain".
    """
    return core._C._has_onednn()


def is_acl_available() -> bool:
    """Return whether it is built with Arm's library: no, this is x86-64."""
    return False


def set_flags(
    _enabled: bool | None = None, _deterministic: bool | None = None, _allow_tf32: bool | None = None
) -> tuple[Any, ...]:
    """Set the switches that are given; returns what all of them were.

    Without `enabled` convolutions are computed by plain kernels, which are slow. The other switches change nothing: results
    do not differ from run to run, and there is no TF32 on the CPU.
    """
    return set_switches(
        sys.modules[__name__], enabled=_enabled, deterministic=_deterministic, allow_tf32=_allow_tf32
    )


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True
) -> AbstractContextManager[None]:
    """Set the switches within a block."""
    return switched(
        sys.modules[__name__], enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32
    )


class _Switches(ModuleType):
    """The module's class: assigning to `enabled` is what switches."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "enabled":
            if not isinstance(value, bool):
                raise TypeError(f"backends.mkldnn.enabled: must be a bool, not {type(value).__name__}")
            core._C._use_onednn(value)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Switches
