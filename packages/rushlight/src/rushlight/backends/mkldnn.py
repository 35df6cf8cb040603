"""oneDNN, under its former name MKL-DNN. oneDNN computes convolutions on the CPU."""

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
    """Return whether oneDNN can compute convolutions.

    The result is False if core was built without oneDNN, or if the environment variable RUSHLIGHT_COMPUTE is "plain".

    Example:
        >>> isinstance(torch.backends.mkldnn.is_available(), bool)
        True
    """
    return core._C._has_onednn()


def is_acl_available() -> bool:
    """Return False: the Arm Compute Library is not used.

    Example:
        >>> torch.backends.mkldnn.is_acl_available()
        False
    """
    return False


def set_flags(
    _enabled: bool | None = None, _deterministic: bool | None = None, _allow_tf32: bool | None = None
) -> tuple[Any, ...]:
    """Set the switches that are passed, and return the previous values of all switches.

    Args:
        _enabled: whether oneDNN computes convolutions. If False, slower plain kernels compute convolutions.
        _deterministic: has no effect, because results do not differ from run to run.
        _allow_tf32: has no effect, because there is no TF32 on the CPU.

    Example:
        >>> before = torch.backends.mkldnn.set_flags(_enabled=False)
        >>> torch.backends.mkldnn.enabled
        False
        >>> _ = torch.backends.mkldnn.set_flags(*before)
    """
    return set_switches(
        sys.modules[__name__], enabled=_enabled, deterministic=_deterministic, allow_tf32=_allow_tf32
    )


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True
) -> AbstractContextManager[None]:
    """Set the switches within a block, and restore them afterwards.

    Args:
        enabled, deterministic, allow_tf32: the settings within the block; see `set_flags`.

    Example:
        >>> with torch.backends.mkldnn.flags(enabled=False):
        ...     torch.backends.mkldnn.enabled
        False
    """
    return switched(
        sys.modules[__name__], enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32
    )


class _Switches(ModuleType):
    """The class of the module object `backends.mkldnn`.

    Assigning to `enabled` makes rushlight-core use or avoid oneDNN."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "enabled":
            if not isinstance(value, bool):
                raise TypeError(f"backends.mkldnn.enabled: must be a bool, not {type(value).__name__}")
            core._C._use_onednn(value)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Switches
