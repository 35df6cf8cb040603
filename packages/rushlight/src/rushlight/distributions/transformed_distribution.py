"""rushlight_nn.distributions.transformed_distribution, where PyTorch has it."""

from rushlight_nn.distributions.transformed_distribution import *  # noqa: F403
from rushlight_nn.distributions.transformed_distribution import __all__ as __all__
