"""Switches for convolutions on GPUs, which NVIDIA's library cuDNN computes.

Attributes:
    enabled: whether convolutions may use cuDNN; True by default. Otherwise, and for dtypes and sizes that cuDNN does not
        support, the GPU package's own kernels compute them.
    benchmark: whether the first convolution of each size times several of cuDNN's kernels, so that later convolutions use
        the fastest one; False by default, which means that cuDNN recommends a kernel. Nothing is timed while a graph is
        captured.
    benchmark_limit: the maximum number of kernels that are timed; 10 by default, and 0 for all.
    deterministic: whether to use only kernels that give the same results for the same input each time; False by default.
        `use_deterministic_algorithms` has the same effect on convolutions.
    allow_tf32: whether float32 convolutions and recurrent layers may round to TF32, which has 10 bits of mantissa; True by
        default.
    fp32_precision: "tf32", "ieee", or "none" for the value of `backends.fp32_precision`. `conv` and `rnn` have their own.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import rushlight_core as core
from rushlight.backends._switches import set_switches, switched
from rushlight_core import _settings

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32: bool
fp32_precision: str

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "conv",
    "deterministic",
    "enabled",
    "flags",
    "fp32_precision",
    "is_acceptable",
    "is_available",
    "rnn",
    "set_flags",
    "version",
]


class _Precision:
    """The precision of one kind of computation.

    Attributes:
        fp32_precision: "tf32", "ieee", or "none" for the value of `backends.cudnn.fp32_precision`; "tf32" by default.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    @property
    def fp32_precision(self) -> str:
        return _settings.fp32_precision(self._what)

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        _settings.set_fp32_precision(self._what, value)


conv: _Precision = _Precision("conv")
rnn: _Precision = _Precision("rnn")


def is_available() -> bool:
    """Return whether a CUDA device is available, as `cuda.is_available` does.

    Example:
        >>> torch.backends.cudnn.is_available() == torch.cuda.is_available()
        True
    """
    return core.devices.device_count("cuda") > 0


def version() -> int | None:
    """Return the version of cuDNN, such as 91900 for cuDNN 9.19.0; None if no CUDA device or no cuDNN is available.

    Example:
        >>> torch.backends.cudnn.version() is None or torch.backends.cudnn.version() >= 91900
        True
    """
    if not is_available():  # otherwise the plug-in has loaded cuDNN, if it is installed
        return None
    try:
        library = ctypes.CDLL("libcudnn.so.9", mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        return None
    library.cudnnGetVersion.restype = ctypes.c_size_t
    return int(library.cudnnGetVersion())


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
    _fp32_precision: str | None = None,
) -> tuple[Any, ...]:
    """Set the switches that are passed, and return the previous values of all switches.

    Args:
        _enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision: new values; None leaves a
            switch unchanged.

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
        fp32_precision=_fp32_precision,
    )


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:
    """Set the switches within a block, and restore them afterwards.

    Args:
        enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision: the settings within the block.

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
        fp32_precision=fp32_precision,
    )


# The settings of core that the switches set.
_SETTINGS = {
    "enabled": "library_convolutions",
    "benchmark": "timed_convolutions",
    "benchmark_limit": "timed_candidates",
    "deterministic": "deterministic_convolutions",
}


class _Switches(ModuleType):
    """The type of the module `backends.cudnn`. Assigning to a switch also sets the setting that devices read."""

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), "allow_tf32", "fp32_precision"})

    @property
    def allow_tf32(self) -> bool:
        return _settings.fp32_precision("conv") == "tf32"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if value != self.allow_tf32:
            _settings.permit_tf32_in_cudnn(value)

    @property
    def fp32_precision(self) -> str:
        return _settings.fp32_precision("cuda")

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        _settings.set_fp32_precision("cuda", value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "benchmark_limit":
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"backends.cudnn.benchmark_limit: must be an int, not {type(value).__name__}")
            if not 0 <= value < 2**31:
                raise ValueError(f"backends.cudnn.benchmark_limit: must be from 0 to 2**31 - 1, got {value}")
        elif (name in _SETTINGS or name == "allow_tf32") and not isinstance(value, bool):
            raise TypeError(f"backends.cudnn.{name}: must be a bool, not {type(value).__name__}")
        if name in _SETTINGS:
            core._C._set_setting(_SETTINGS[name], value)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Switches
