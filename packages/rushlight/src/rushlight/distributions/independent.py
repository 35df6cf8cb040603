"""rushlight_nn.distributions.independent, where PyTorch has it."""

from rushlight_nn.distributions.independent import *  # noqa: F403
from rushlight_nn.distributions.independent import __all__ as __all__
