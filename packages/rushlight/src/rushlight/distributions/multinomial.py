"""rushlight_nn.distributions.multinomial, where PyTorch has it."""

from rushlight_nn.distributions.multinomial import *  # noqa: F403
from rushlight_nn.distributions.multinomial import __all__ as __all__
