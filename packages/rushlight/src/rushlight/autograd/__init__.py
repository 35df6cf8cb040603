"""Automatic differentiation: rushlight_autograd."""

import rushlight_autograd as _package
from rushlight_autograd import *  # noqa: F403

__all__ = list(_package.__all__)


def __getattr__(name: str) -> object:
    return getattr(_package, name)
