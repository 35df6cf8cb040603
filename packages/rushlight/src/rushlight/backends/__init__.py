"""Information about the libraries that compute operators, and switches for these libraries.

Functions such as `mkl.is_available` report which of these libraries can be used. The following switches have
an effect: `device_fallback`, `cpu.winograd`, `mkldnn.enabled`, `mha.set_fastpath_enabled`,
`cuda.matmul.allow_tf32`, `cudnn.allow_tf32`, and the switches of attention (`cuda.enable_math_sdp` and
others). The other switches can be set but have no effect, because most operators have one implementation per
device.

`device_fallback` selects what happens if a device has no kernel for an operator. With "error", the default,
NotImplementedError is raised. With "warn", the arguments are copied to the CPU, which computes the operator, and the first
call of each operator issues a warning with the number of bytes that were copied.
"""

from __future__ import annotations

import sys
from types import ModuleType

import rushlight_core as core
from rushlight.backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]

device_fallback: str


class _Switches(ModuleType):
    """The type of the module `backends`. Its property `device_fallback` reads and sets core's setting."""

    @property
    def device_fallback(self) -> str:
        return core._C._device_fallback()

    @device_fallback.setter
    def device_fallback(self, choice: str) -> None:
        core._C._set_device_fallback(choice)


sys.modules[__name__].__class__ = _Switches
