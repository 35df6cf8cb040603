"""rushlight_nn.distributions.dirichlet, where PyTorch has it."""

from rushlight_nn.distributions.dirichlet import *  # noqa: F403
from rushlight_nn.distributions.dirichlet import __all__ as __all__
