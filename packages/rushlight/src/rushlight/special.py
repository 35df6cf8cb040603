"""Special functions: rushlight_core.special."""

import rushlight_core.special as _package
from rushlight_core.special import *  # noqa: F403

__all__ = list(_package.__all__)
