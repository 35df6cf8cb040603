"""rushlight_nn.distributions.binomial, where PyTorch has it."""

from rushlight_nn.distributions.binomial import *  # noqa: F403
from rushlight_nn.distributions.binomial import __all__ as __all__
