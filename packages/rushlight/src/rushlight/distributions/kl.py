"""rushlight_nn.distributions.kl, where PyTorch has it."""

from rushlight_nn.distributions.kl import *  # noqa: F403
from rushlight_nn.distributions.kl import __all__ as __all__
