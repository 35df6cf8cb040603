"""The former names of the functions for mixed precision on GPUs. `rushlight.amp` supports every device."""

from __future__ import annotations

from typing import Any

import rushlight_core as core
from rushlight_core import amp as _amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_amp.autocast):  # noqa: N801
    """Context manager for computation in lower precision on GPUs: `rushlight.amp.autocast("cuda", ...)`.

    Example:
        >>> with torch.cuda.amp.autocast(enabled=False):
        ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
        torch.float32
    """

    def __init__(self, enabled: bool = True, dtype: Any = core.float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """Loss scaler for float16 on GPUs: `rushlight.amp.GradScaler("cuda", ...)`.

    Example:
        >>> torch.cuda.amp.GradScaler(enabled=False).is_enabled()
        False
    """

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
    """Decorate the forward of a `Function` for autocast on GPUs: `rushlight.amp.custom_fwd(..., device_type="cuda")`.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.cuda.amp.custom_fwd
        ...     def forward(ctx, x):
        ...         return 2 * x
        >>> Double.apply(torch.ones(2))
        tensor([2., 2.])
    """
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """Decorate the backward of a `Function` for autocast on GPUs: `rushlight.amp.custom_bwd(..., device_type="cuda")`.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.cuda.amp.custom_fwd
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @torch.cuda.amp.custom_bwd
        ...     def backward(ctx, grad):
        ...         return 2 * grad
        >>> x = torch.ones(2, requires_grad=True)
        >>> Double.apply(x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    return _amp.custom_bwd(bwd, device_type="cuda")
