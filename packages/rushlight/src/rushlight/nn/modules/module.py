"""Module, by the file that PyTorch has it in."""

from rushlight_nn.module import Module
from rushlight_nn.state import IncompatibleKeys as _IncompatibleKeys  # noqa: F401  by the name that programs import

__all__ = ["Module"]

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
