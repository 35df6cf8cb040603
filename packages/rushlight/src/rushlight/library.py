"""Custom operators: `rushlight_autograd.library`."""

import rushlight_autograd.library as _package
from rushlight_autograd.library import *  # noqa: F403

__all__ = list(_package.__all__)
