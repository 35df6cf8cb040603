"""rushlight_nn.distributions.exp_family, where PyTorch has it."""

from rushlight_nn.distributions.exp_family import *  # noqa: F403
from rushlight_nn.distributions.exp_family import __all__ as __all__
