"""Settings for matrix products on GPUs and for attention, and the availability of the GPU package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import rushlight_core as core
from rushlight_core import _settings

__all__ = [
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_linalg_library",
    "sdp_kernel",
]


class _Products:
    """Settings for matrix products on GPUs. Assigning to an unknown attribute raises AttributeError.

    Attributes:
        allow_tf32: whether float32 factors may be rounded to TF32, which has 10 bits of mantissa; False by default.
            Setting `allow_tf32` has the same effect as `set_float32_matmul_precision`.
        fp32_precision: the same as a string: "tf32", "ieee", or "none" for the value of `backends.cudnn.fp32_precision`.
        allow_fp16_accumulation: whether sums of products of float16 are computed in float16, which is faster and less
            precise than float32; False by default.
        allow_fp16_reduced_precision_reduction, allow_bf16_reduced_precision_reduction: whether parts of a sum that several
            blocks compute may be added in less than float32. They are always added in float32, also if it is permitted. The
            value may be a pair, whose second item is the following attribute.
        allow_fp16_reduced_precision_reduction_split_k, allow_bf16_reduced_precision_reduction_split_k: whether several
            blocks may compute parts of a sum; True by default. To change the value, assign a pair to the attribute above.
    """

    __slots__ = ("_accumulates_fp16", "_reductions")

    def __init__(self) -> None:
        self._accumulates_fp16 = False
        self._reductions = {"fp16": (True, True), "bf16": (True, True)}

    @property
    def allow_tf32(self) -> bool:
        return _settings.fp32_precision("matmul") == "tf32"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"backends.cuda.matmul.allow_tf32: must be a bool, not {type(value).__name__}")
        core.set_float32_matmul_precision("high" if value else "highest")

    @property
    def fp32_precision(self) -> str:
        return _settings.fp32_precision("matmul")

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        _settings.set_fp32_precision("matmul", value)

    @property
    def allow_fp16_accumulation(self) -> bool:
        return self._accumulates_fp16

    @allow_fp16_accumulation.setter
    def allow_fp16_accumulation(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(
                f"backends.cuda.matmul.allow_fp16_accumulation: must be a bool, not {type(value).__name__}"
            )
        core._C._set_setting("fp16_accumulation", value)
        self._accumulates_fp16 = value

    @property
    def allow_fp16_reduced_precision_reduction(self) -> bool:
        return self._reductions["fp16"][0]

    @allow_fp16_reduced_precision_reduction.setter
    def allow_fp16_reduced_precision_reduction(self, value: bool | Sequence[bool]) -> None:
        self._set_reduction("fp16", value, "fp16_split_sums")

    @property
    def allow_fp16_reduced_precision_reduction_split_k(self) -> bool:
        return self._reductions["fp16"][1]

    @property
    def allow_bf16_reduced_precision_reduction(self) -> bool:
        return self._reductions["bf16"][0]

    @allow_bf16_reduced_precision_reduction.setter
    def allow_bf16_reduced_precision_reduction(self, value: bool | Sequence[bool]) -> None:
        self._set_reduction("bf16", value, "bfloat16_split_sums")

    @property
    def allow_bf16_reduced_precision_reduction_split_k(self) -> bool:
        return self._reductions["bf16"][1]

    def _set_reduction(self, dtype: str, value: bool | Sequence[bool], setting: str) -> None:
        given = (
            [value] if isinstance(value, bool) else list(value) if isinstance(value, (list, tuple)) else []
        )
        if not 1 <= len(given) <= 2 or not all(isinstance(each, bool) for each in given):
            raise TypeError(
                f"backends.cuda.matmul.allow_{dtype}_reduced_precision_reduction: must be one or two bools, got {value!r}"
            )
        self._reductions[dtype] = given[0], given[-1] if len(given) == 2 else True
        core._C._set_setting(setting, self._reductions[dtype][1])


matmul: _Products = _Products()


def is_built() -> bool:
    """Return whether the package for GPUs is installed and can be used.

    Example:
        >>> torch.backends.cuda.is_built() == torch.cuda.is_available()
        True
    """
    return core.devices.device_count("cuda") > 0


def preferred_linalg_library(backend: Any = None) -> str:
    """Return "default": the library for linear algebra on GPUs cannot be selected.

    Args:
        backend: has no effect.

    Example:
        >>> torch.backends.cuda.preferred_linalg_library()
        'default'
    """
    return "default"


# The implementations of attention that are enabled in the whole process. There are two implementations: a kernel that
# stores no score matrix, for which PyTorch has two names, and operators. cuDNN does not compute attention on the CPU.
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def _enable_sdp(**wanted: bool) -> None:
    _sdp.update({name: bool(value) for name, value in wanted.items()})
    core._C._choose_attention(_sdp["flash"] or _sdp["mem_efficient"], _sdp["math"])


def flash_sdp_enabled() -> bool:
    """Return whether FLASH_ATTENTION, a kernel that stores no score matrix, is enabled.

    Example:
        >>> torch.backends.cuda.flash_sdp_enabled()
        True
    """
    return _sdp["flash"]


def mem_efficient_sdp_enabled() -> bool:
    """Return whether EFFICIENT_ATTENTION, which is the same kernel as FLASH_ATTENTION, is enabled.

    Example:
        >>> torch.backends.cuda.mem_efficient_sdp_enabled()
        True
    """
    return _sdp["mem_efficient"]


def math_sdp_enabled() -> bool:
    """Return whether the MATH implementation of attention, matrix products and a softmax, is enabled.

    Example:
        >>> torch.backends.cuda.math_sdp_enabled()
        True
    """
    return _sdp["math"]


def cudnn_sdp_enabled() -> bool:
    """Return the value that `enable_cudnn_sdp` has set; True by default. Attention is never computed by cuDNN.

    Example:
        >>> torch.backends.cuda.cudnn_sdp_enabled()
        True
    """
    return _sdp["cudnn"]


def enable_flash_sdp(enabled: bool) -> None:
    """Enable or disable FLASH_ATTENTION.

    EFFICIENT_ATTENTION uses the same kernel. To disable the kernel, disable both.

    Example:
        >>> torch.backends.cuda.enable_flash_sdp(False)
        >>> torch.backends.cuda.flash_sdp_enabled()
        False
        >>> torch.backends.cuda.enable_flash_sdp(True)
    """
    _enable_sdp(flash=enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Enable or disable EFFICIENT_ATTENTION.

    FLASH_ATTENTION uses the same kernel. To disable the kernel, disable both.

    Example:
        >>> torch.backends.cuda.enable_mem_efficient_sdp(True)
        >>> torch.backends.cuda.mem_efficient_sdp_enabled()
        True
    """
    _enable_sdp(mem_efficient=enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Enable or disable the MATH implementation of attention, which uses matrix products and a softmax.

    If `enabled` is False, attention raises RuntimeError for inputs that FLASH_ATTENTION does not support.

    Example:
        >>> torch.backends.cuda.enable_math_sdp(True)
        >>> torch.backends.cuda.math_sdp_enabled()
        True
    """
    _enable_sdp(math=enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Set the value that `cudnn_sdp_enabled` returns. The setting has no other effect.

    Example:
        >>> torch.backends.cuda.enable_cudnn_sdp(True)
        >>> torch.backends.cuda.cudnn_sdp_enabled()
        True
    """
    _enable_sdp(cudnn=enabled)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Enable or disable implementations of attention within a block. Deprecated: use `nn.attention.sdpa_kernel`.

    Args:
        enable_flash, enable_math, enable_mem_efficient, enable_cudnn: the settings within the block; the previous settings
            are restored at its end.

    Example:
        >>> with torch.backends.cuda.sdp_kernel(enable_flash=False):
        ...     torch.backends.cuda.flash_sdp_enabled()
        False
    """
    before = dict(_sdp)
    _enable_sdp(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _enable_sdp(**before)
