"""rushlight_nn.distributions.cauchy, where PyTorch has it."""

from rushlight_nn.distributions.cauchy import *  # noqa: F403
from rushlight_nn.distributions.cauchy import __all__ as __all__
