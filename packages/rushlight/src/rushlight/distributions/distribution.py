"""rushlight_nn.distributions.distribution, where PyTorch has it."""

from rushlight_nn.distributions.distribution import *  # noqa: F403
from rushlight_nn.distributions.distribution import __all__ as __all__
