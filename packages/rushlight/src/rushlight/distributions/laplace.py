"""rushlight_nn.distributions.laplace, where PyTorch has it."""

from rushlight_nn.distributions.laplace import *  # noqa: F403
from rushlight_nn.distributions.laplace import __all__ as __all__
