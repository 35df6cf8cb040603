"""Information about the CPU's vector instructions, and a switch for the algorithm of convolutions.

`winograd`, by default True, sets whether convolutions with 3x3 filters, stride 1 and float32 may be computed by minimal
filtering (Lavin and Gray, 2016), which needs as little as a quarter of the multiplications. Relative to the largest result,
the errors of minimal filtering are at most 1e-5, and the errors of direct convolution are at most 3e-6. Set `winograd` to
False for direct convolution.
"""

from __future__ import annotations

import sys
from types import ModuleType

import rushlight_core as core

__all__ = ["get_cpu_capability"]

winograd: bool


def get_cpu_capability() -> str:
    """Return the widest vector instructions that kernels use on this machine: "AVX512", "AVX2" or "PORTABLE".

    The result depends on the CPU, on the build of the library, and on the variable RUSHLIGHT_CPU_CAPABILITY.

    Example:
        >>> torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "PORTABLE")
        True
    """
    return core._C._cpu_capability().upper()


class _Switches(ModuleType):
    """The class of the module `backends.cpu`. Its attribute `winograd` reads and sets a switch in C++."""

    @property
    def winograd(self) -> bool:
        return core._C._winograd()

    @winograd.setter
    def winograd(self, on: bool) -> None:
        if not isinstance(on, bool):
            raise TypeError(f"backends.cpu.winograd: must be a bool, not {type(on).__name__}")
        core._C._use_winograd(on)


sys.modules[__name__].__class__ = _Switches
