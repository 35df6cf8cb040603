"""Window functions: rushlight_core.signal.windows."""

import rushlight_core.signal.windows as _package
from rushlight_core.signal.windows import *  # noqa: F403

__all__ = list(_package.__all__)
