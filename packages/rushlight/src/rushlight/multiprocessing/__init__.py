"""Processes that share tensors: rushlight_multiprocessing."""

import rushlight_multiprocessing as _package

# The file `spawn` comes first: once it is loaded, nothing puts it in the place of the function of this name.
from rushlight.multiprocessing import spawn as spawn
from rushlight_multiprocessing import *  # noqa: F403

__all__ = list(_package.__all__)

TYPE_CHECKING = False  # a checker would take every name for one that is there
if not TYPE_CHECKING:
    from rushlight._wrapped import names_of

    __getattr__ = names_of(_package)
