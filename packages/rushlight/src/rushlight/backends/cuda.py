"""Settings for matrix products on GPUs and for attention, and the availability of the GPU package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rushlight_core as core

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
    """Settings for matrix products on GPUs.

    Attributes:
        allow_tf32: whether float32 factors may be rounded to TF32, which has 10 bits of mantissa; False by default.
            Setting `allow_tf32` has the same effect as `set_float32_matmul_precision`.
        allow_fp16_reduced_precision_reduction, allow_bf16_reduced_precision_reduction: have no effect, because sums are
            always computed in float32.
    """

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    @property
    def allow_tf32(self) -> bool:
        return core.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"backends.cuda.matmul.allow_tf32: must be a bool, not {type(value).__name__}")
        core.set_float32_matmul_precision("high" if value else "highest")

    @property
    def fp32_precision(self) -> str:
        """The value of `allow_tf32` as a string: "tf32" if it is True, and "ieee" if it is False."""
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("tf32", "ieee", "none"):
            raise RuntimeError(
                f"backends.cuda.matmul.fp32_precision: must be 'tf32', 'ieee' or 'none', got {value!r}"
            )
        self.allow_tf32 = value == "tf32"


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
