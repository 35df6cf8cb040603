"""rushlight_nn.distributions.geometric, where PyTorch has it."""

from rushlight_nn.distributions.geometric import *  # noqa: F403
from rushlight_nn.distributions.geometric import __all__ as __all__
