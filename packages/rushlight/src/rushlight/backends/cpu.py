"""The CPU's instructions."""

from __future__ import annotations

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The widest vectors that this CPU has: "AVX512", "AVX2" or "DEFAULT"."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line.split() for line in file if line.startswith("flags")), [])
    except OSError:
        return "DEFAULT"
    if {"avx512f", "avx512dq", "avx512bw", "avx512vl"}.issubset(flags):
        return "AVX512"
    return "AVX2" if {"avx2", "fma"}.issubset(flags) else "DEFAULT"
