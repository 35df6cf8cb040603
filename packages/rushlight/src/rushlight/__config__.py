"""How the library was built."""

from __future__ import annotations

import rushlight
import rushlight_core as _core

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Return a text for reports of errors. It names no flag of PyTorch's build."""
    from rushlight.backends import cpu, mkldnn

    return (
        f"rushlight {rushlight.__version__}\n"
        f"  - CPU capability usage: {cpu.get_cpu_capability()}\n"
        f"  - oneDNN: {'yes' if mkldnn.is_available() else 'no'}, MKL: no\n"
    )


def parallel_info() -> str:
    """Return how many threads compute."""
    return f"at::get_num_threads() : {_core.get_num_threads()}\n"
