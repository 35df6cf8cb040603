"""Linear algebra: rushlight_core.linalg."""

import rushlight_core.linalg as _package
from rushlight_core.linalg import *  # noqa: F403

__all__ = list(_package.__all__)
