"""Switches for convolutions on GPUs, in a module named after NVIDIA's library cuDNN, as in PyTorch.

Only the switch `allow_tf32` has an effect: it sets whether float32 convolutions may round to TF32. The other switches
are only stored, because kernels are deterministic and are not selected by timing.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import rushlight_core as core
from rushlight.backends._switches import set_switches, switched

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "is_acceptable",
    "is_available",
    "set_flags",
    "version",
]


def is_available() -> bool:
    """Return whether a CUDA device is available, as `cuda.is_available` does.

    Example:
        >>> torch.backends.cudnn.is_available() == torch.cuda.is_available()
        True
    """
    return core.devices.device_count("cuda") > 0


def version() -> int | None:
    """Return None: the version of cuDNN is not determined.

    Example:
        >>> torch.backends.cudnn.version() is None
        True
    """
    return None


def is_acceptable(tensor: core.Tensor) -> bool:
    """Return whether `tensor` is on a GPU and the switch `enabled` is True.

    Shape:
        - `tensor`: (*), of any shape.

    Example:
        >>> torch.backends.cudnn.is_acceptable(torch.ones(2))
        False
    """
    return tensor.is_cuda and enabled


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[Any, ...]:
    """Set the switches that are passed, and return the previous values of all switches.

    Args:
        _enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32: new values; None leaves a switch unchanged.

    Example:
        >>> before = torch.backends.cudnn.set_flags(_deterministic=True)
        >>> torch.backends.cudnn.deterministic
        True
        >>> _ = torch.backends.cudnn.set_flags(*before)
    """
    return set_switches(
        sys.modules[__name__],
        enabled=_enabled,
        benchmark=_benchmark,
        benchmark_limit=_benchmark_limit,
        deterministic=_deterministic,
        allow_tf32=_allow_tf32,
    )


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> AbstractContextManager[None]:
    """Set the switches within a block, and restore them afterwards.

    Args:
        enabled, benchmark, benchmark_limit, deterministic, allow_tf32: the settings within the block.

    Example:
        >>> with torch.backends.cudnn.flags(enabled=True, deterministic=True):
        ...     torch.backends.cudnn.deterministic
        True
    """
    return switched(
        sys.modules[__name__],
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
    )


class _Switches(ModuleType):
    """The type of the module `backends.cudnn`.

    Assigning to the attribute `allow_tf32` also sets whether float32 convolutions may round to TF32."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            if not isinstance(value, bool):
                raise TypeError(f"backends.cudnn.allow_tf32: must be a bool, not {type(value).__name__}")
            core._C._permit_tf32(1, value)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Switches
