"""Mixed precision on GPUs, by its former names; `rushlight.amp` has it for every device."""

from __future__ import annotations

from typing import Any

import rushlight_core as core
from rushlight_core import amp as _amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_amp.autocast):  # noqa: N801
    """`rushlight.amp.autocast("cuda", ...)`."""

    def __init__(self, enabled: bool = True, dtype: Any = core.float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """`rushlight.amp.GradScaler("cuda", ...)`."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """`rushlight.amp.custom_fwd(..., device_type="cuda")`."""
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """`rushlight.amp.custom_bwd(..., device_type="cuda")`."""
    return _amp.custom_bwd(bwd, device_type="cuda")
