"""The base class of optimizers, under PyTorch's module path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight_core import Tensor
from rushlight_nn.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)

__all__ = [
    "Optimizer",
    "ParamsT",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
params_t = _params_t = ParamsT
