"""rushlight_nn.distributions.kumaraswamy, where PyTorch has it."""

from rushlight_nn.distributions.kumaraswamy import *  # noqa: F403
from rushlight_nn.distributions.kumaraswamy import __all__ as __all__
