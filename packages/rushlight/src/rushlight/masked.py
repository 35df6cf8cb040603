"""Reductions and normalizations of the elements that a mask keeps: rushlight_core.masked."""

import rushlight_core.masked as _package
from rushlight_core.masked import *  # noqa: F403

__all__ = list(_package.__all__)
