"""Profiling, implemented in rushlight_profiler. `python -m rushlight.profiler script.py` profiles a program."""

import rushlight_profiler as _package
from rushlight_profiler import *  # noqa: F403

__all__ = [*_package.__all__, "kineto_available"]


def kineto_available() -> bool:
    """Return True: `profile` records timelines, with this library's own recorder.

    Example:
        >>> torch.profiler.kineto_available()
        True
    """
    return True


TYPE_CHECKING = False  # with `__getattr__`, type checkers would accept any name
if not TYPE_CHECKING:
    from rushlight._wrapped import names_of

    __getattr__ = names_of(_package)
