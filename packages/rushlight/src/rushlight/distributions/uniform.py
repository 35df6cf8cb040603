"""rushlight_nn.distributions.uniform, where PyTorch has it."""

from rushlight_nn.distributions.uniform import *  # noqa: F403
from rushlight_nn.distributions.uniform import __all__ as __all__
