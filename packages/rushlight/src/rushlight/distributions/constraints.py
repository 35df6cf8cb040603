"""rushlight_nn.distributions.constraints, where PyTorch has it."""

from rushlight_nn.distributions.constraints import *  # noqa: F403
from rushlight_nn.distributions.constraints import __all__ as __all__
