"""rushlight_nn.distributions.log_normal, where PyTorch has it."""

from rushlight_nn.distributions.log_normal import *  # noqa: F403
from rushlight_nn.distributions.log_normal import __all__ as __all__
