"""Learning-rate schedules: rushlight_nn.optim.lr_scheduler."""

import rushlight_nn.optim.lr_scheduler as _package
from rushlight_nn.optim.lr_scheduler import *  # noqa: F403

__all__ = list(_package.__all__)


def __getattr__(name: str) -> object:
    return getattr(_package, name)
