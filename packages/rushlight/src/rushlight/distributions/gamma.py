"""rushlight_nn.distributions.gamma, where PyTorch has it."""

from rushlight_nn.distributions.gamma import *  # noqa: F403
from rushlight_nn.distributions.gamma import __all__ as __all__
