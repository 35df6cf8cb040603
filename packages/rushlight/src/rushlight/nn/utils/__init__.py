"""Gradient clipping, parameter vectors and other helpers, implemented in rushlight_nn.utils."""

import rushlight_nn.utils as _package
from rushlight_nn.utils import *  # noqa: F403

__all__ = list(_package.__all__)

TYPE_CHECKING = False  # with `__getattr__`, type checkers would accept any name
if not TYPE_CHECKING:
    from rushlight._wrapped import load_namesakes, names_of

    __getattr__ = names_of(_package, __name__)
    load_namesakes(__name__, "spectral_norm", "weight_norm")
