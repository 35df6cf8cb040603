"""rushlight_nn.distributions.half_cauchy, where PyTorch has it."""

from rushlight_nn.distributions.half_cauchy import *  # noqa: F403
from rushlight_nn.distributions.half_cauchy import __all__ as __all__
