"""Where the time goes: rushlight_profiler."""

import rushlight_profiler as _package
from rushlight_profiler import *  # noqa: F403

__all__ = list(_package.__all__)


def __getattr__(name: str) -> object:
    return getattr(_package, name)
