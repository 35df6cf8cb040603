"""Processes that share tensors: rushlight_multiprocessing."""

import rushlight_multiprocessing as _package
from rushlight_multiprocessing import *  # noqa: F403

__all__ = list(_package.__all__)


def __getattr__(name: str) -> object:
    return getattr(_package, name)
