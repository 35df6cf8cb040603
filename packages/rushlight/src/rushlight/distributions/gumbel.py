"""rushlight_nn.distributions.gumbel, where PyTorch has it."""

from rushlight_nn.distributions.gumbel import *  # noqa: F403
from rushlight_nn.distributions.gumbel import __all__ as __all__
