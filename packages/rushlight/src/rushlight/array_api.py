"""The namespace of the Python array API standard: rushlight_core.array_api."""

import rushlight_core.array_api as _package
from rushlight_core.array_api import *  # noqa: F403

__all__ = list(_package.__all__)
