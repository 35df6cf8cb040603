"""Processes that share tensors: rushlight_multiprocessing."""

import rushlight_multiprocessing as _package
from rushlight_multiprocessing import *  # noqa: F403

__all__ = list(_package.__all__)

TYPE_CHECKING = False  # a checker would take every name for one that is there
if not TYPE_CHECKING:
    from rushlight._wrapped import load_namesakes, names_of

    __getattr__ = names_of(_package, __name__)
    load_namesakes(__name__, "spawn")
