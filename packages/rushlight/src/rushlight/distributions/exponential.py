"""rushlight_nn.distributions.exponential, where PyTorch has it."""

from rushlight_nn.distributions.exponential import *  # noqa: F403
from rushlight_nn.distributions.exponential import __all__ as __all__
