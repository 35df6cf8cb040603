"""rushlight_nn.distributions.relaxed_categorical, where PyTorch has it."""

from rushlight_nn.distributions.relaxed_categorical import *  # noqa: F403
from rushlight_nn.distributions.relaxed_categorical import __all__ as __all__
