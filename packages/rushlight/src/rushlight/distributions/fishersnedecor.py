"""rushlight_nn.distributions.fishersnedecor, where PyTorch has it."""

from rushlight_nn.distributions.fishersnedecor import *  # noqa: F403
from rushlight_nn.distributions.fishersnedecor import __all__ as __all__
