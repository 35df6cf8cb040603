"""Optimizers: rushlight_nn.optim."""

import rushlight_nn.optim as _package
from rushlight_nn.optim import *  # noqa: F403

__all__ = list(_package.__all__)


def __getattr__(name: str) -> object:
    return getattr(_package, name)
