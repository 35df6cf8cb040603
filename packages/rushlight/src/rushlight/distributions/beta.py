"""rushlight_nn.distributions.beta, where PyTorch has it."""

from rushlight_nn.distributions.beta import *  # noqa: F403
from rushlight_nn.distributions.beta import __all__ as __all__
