"""rushlight_nn.distributions.von_mises, where PyTorch has it."""

from rushlight_nn.distributions.von_mises import *  # noqa: F403
from rushlight_nn.distributions.von_mises import __all__ as __all__
