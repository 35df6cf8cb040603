"""rushlight_nn.distributions.categorical, where PyTorch has it."""

from rushlight_nn.distributions.categorical import *  # noqa: F403
from rushlight_nn.distributions.categorical import __all__ as __all__
