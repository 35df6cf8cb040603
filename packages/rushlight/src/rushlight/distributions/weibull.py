"""rushlight_nn.distributions.weibull, where PyTorch has it."""

from rushlight_nn.distributions.weibull import *  # noqa: F403
from rushlight_nn.distributions.weibull import __all__ as __all__
