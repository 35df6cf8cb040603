"""rushlight_nn.distributions.poisson, where PyTorch has it."""

from rushlight_nn.distributions.poisson import *  # noqa: F403
from rushlight_nn.distributions.poisson import __all__ as __all__
