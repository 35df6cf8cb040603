"""rushlight_nn.distributions.wishart, where PyTorch has it."""

from rushlight_nn.distributions.wishart import *  # noqa: F403
from rushlight_nn.distributions.wishart import __all__ as __all__
