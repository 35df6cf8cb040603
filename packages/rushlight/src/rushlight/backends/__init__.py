"""Information about the libraries that compute operators, and switches for these libraries.

Functions such as `mkl.is_available` report which of these libraries can be used. The following switches have
an effect: `device_fallback`, `cpu.winograd`, `mkldnn.enabled`, `mha.set_fastpath_enabled`,
`fp32_precision`, the attributes of `cuda.matmul` and `cudnn`, and the switches of attention (`cuda.enable_math_sdp` and
others). The other switches can be set but have no effect, because most operators have one implementation per
device.

`device_fallback` selects what happens if a device has no kernel for an operator. With "error", the default,
NotImplementedError is raised. With "warn", the arguments are copied to the CPU, which computes the operator, and the first
call of each operator issues a warning with the number of bytes that were copied.

`fp32_precision` is the precision of float32 computations that `cudnn.fp32_precision` uses if it is "none": "tf32", "ieee",
or "none", the default.
"""

from __future__ import annotations

import sys
from types import ModuleType

import rushlight_core as core
from rushlight.backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum
from rushlight_core import _settings

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]

device_fallback: str
fp32_precision: str


class _Switches(ModuleType):
    """The type of the module `backends`. Its property `device_fallback` reads and sets core's setting."""

    @property
    def device_fallback(self) -> str:
        return core._C._device_fallback()

    @device_fallback.setter
    def device_fallback(self, choice: str) -> None:
        core._C._set_device_fallback(choice)

    @property
    def fp32_precision(self) -> str:
        return _settings.fp32_precision("all")

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        _settings.set_fp32_precision("all", value)


sys.modules[__name__].__class__ = _Switches
