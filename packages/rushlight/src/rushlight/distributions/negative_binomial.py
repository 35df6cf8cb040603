"""rushlight_nn.distributions.negative_binomial, where PyTorch has it."""

from rushlight_nn.distributions.negative_binomial import *  # noqa: F403
from rushlight_nn.distributions.negative_binomial import __all__ as __all__
