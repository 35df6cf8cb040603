"""rushlight_nn.distributions.normal, where PyTorch has it."""

from rushlight_nn.distributions.normal import *  # noqa: F403
from rushlight_nn.distributions.normal import __all__ as __all__
