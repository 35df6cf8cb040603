"""Products on GPUs, and whether the GPU package is there."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import rushlight_core as core

__all__ = ["is_built", "matmul", "preferred_linalg_library", "sdp_kernel"]

matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    fp32_precision="none",
)


def is_built() -> bool:
    """Whether the GPU package is installed and can be used."""
    return core.devices.device_count("cuda") > 0


def preferred_linalg_library(backend: Any = None) -> str:
    """Which library does linear algebra on GPUs: "default", there is no choice."""
    return "default"


def flash_sdp_enabled() -> bool:
    """Whether attention keeps no matrix of all pairs: it never does."""
    return True


mem_efficient_sdp_enabled = math_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled


def enable_flash_sdp(enabled: bool) -> None:
    """Accepted: there is one way of computing attention."""


enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp


def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> AbstractContextManager[None]:
    """Accepted: there is one way of computing attention."""
    return nullcontext()
