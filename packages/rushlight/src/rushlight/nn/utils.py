"""Gradient clipping and parameter vectors: rushlight_nn.utils."""

import rushlight_nn.utils as _package
from rushlight_nn.utils import *  # noqa: F403

__all__ = list(_package.__all__)


def __getattr__(name: str) -> object:
    return getattr(_package, name)
