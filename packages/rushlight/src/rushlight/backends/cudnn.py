"""cuDNN: NVIDIA's kernels for layers, which come with the GPU package."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
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
    """Whether a GPU is there to use it."""
    return core.devices.device_count("cuda") > 0


def version() -> int | None:
    """Its version: not known here."""
    return None


def is_acceptable(tensor: core.Tensor) -> bool:
    """Whether it computes with such a tensor."""
    return tensor.is_cuda and enabled


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[Any, ...]:
    """Set the switches that are given; returns what all of them were."""
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
    """The switches within a block."""
    return switched(
        sys.modules[__name__],
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
    )
