"""rushlight_nn.distributions.inverse_gamma, where PyTorch has it."""

from rushlight_nn.distributions.inverse_gamma import *  # noqa: F403
from rushlight_nn.distributions.inverse_gamma import __all__ as __all__
