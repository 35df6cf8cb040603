"""The CPU's instructions."""

from __future__ import annotations

import rushlight_core as core

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The widest vectors that kernels use here: "AVX512" or "AVX2".

    It depends on the CPU, on how the library was built, and on RUSHLIGHT_CPU_CAPABILITY.
    """
    return core._C._cpu_capability().upper()
