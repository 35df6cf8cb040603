"""Gradient clipping and parameter vectors: rushlight_nn.utils."""

import rushlight_nn.utils as _package

# The files come first: once they are loaded, nothing puts them in the place of the functions of these names.
from rushlight.nn.utils import spectral_norm as spectral_norm
from rushlight.nn.utils import weight_norm as weight_norm
from rushlight_nn.utils import *  # noqa: F403

__all__ = list(_package.__all__)

TYPE_CHECKING = False  # a checker would take every name for one that is there
if not TYPE_CHECKING:
    from rushlight._wrapped import names_of

    __getattr__ = names_of(_package)
