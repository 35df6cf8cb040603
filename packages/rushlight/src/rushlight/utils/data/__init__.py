"""Datasets and loaders: rushlight_data."""

import rushlight_data as _package
from rushlight_data import *  # noqa: F403

__all__ = list(_package.__all__)


def __getattr__(name: str) -> object:
    return getattr(_package, name)
