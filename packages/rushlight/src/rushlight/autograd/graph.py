"""The recorded graph: rushlight_autograd.graph."""

import rushlight_autograd.graph as _package
from rushlight_autograd.graph import *  # noqa: F403

__all__ = list(_package.__all__)
