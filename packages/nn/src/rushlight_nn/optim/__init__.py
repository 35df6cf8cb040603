"""Optimizers and learning-rate schedulers: `rushlight.optim`. They take any tensors, modules or not."""

from __future__ import annotations

import importlib

from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    if name == "lr_scheduler":
        return importlib.import_module(f"{__name__}.lr_scheduler")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
