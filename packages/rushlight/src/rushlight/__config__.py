"""Information about how the library was built."""

from __future__ import annotations

import rushlight
import rushlight_core as _core

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Return a text with the version and the CPU kernels in use, for bug reports.

    Unlike in PyTorch, the text does not list compiler flags.

    Example:
        >>> print(torch.__config__.show())  # doctest: +ELLIPSIS
        rushlight ...
    """
    from rushlight.backends import cpu, mkldnn

    return (
        f"rushlight {rushlight.__version__}\n"
        f"  - CPU capability usage: {cpu.get_cpu_capability()}\n"
        f"  - oneDNN: {'yes' if mkldnn.is_available() else 'no'}, MKL: no\n"
    )


def parallel_info() -> str:
    """Return a text with the number of threads that kernels use.

    Example:
        >>> "get_num_threads" in torch.__config__.parallel_info()
        True
    """
    return f"at::get_num_threads() : {_core.get_num_threads()}\n"
