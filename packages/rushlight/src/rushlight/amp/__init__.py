"""Mixed precision: rushlight_core.amp."""

import rushlight_core.amp as _package
from rushlight_core.amp import *  # noqa: F403

__all__ = list(_package.__all__)
