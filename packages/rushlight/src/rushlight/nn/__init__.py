"""Layers: rushlight_nn under PyTorch's name."""

import rushlight_nn as _package
from rushlight_nn import *  # noqa: F403

__all__ = list(_package.__all__)

TYPE_CHECKING = False  # a checker would take every name for one that is there
if TYPE_CHECKING:
    from rushlight.nn import utils as utils
else:

    def __getattr__(name: str) -> object:
        return getattr(_package, name)
