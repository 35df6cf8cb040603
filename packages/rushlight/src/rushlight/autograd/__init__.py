"""Automatic differentiation: rushlight_autograd."""

import rushlight_autograd as _package
from rushlight_autograd import *  # noqa: F403

__all__ = list(_package.__all__)

TYPE_CHECKING = False  # a checker would take every name for one that is there
if TYPE_CHECKING:
    from rushlight.autograd import function as function
else:

    def __getattr__(name: str) -> object:
        return getattr(_package, name)
