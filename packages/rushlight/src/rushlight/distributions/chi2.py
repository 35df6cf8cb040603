"""rushlight_nn.distributions.chi2, where PyTorch has it."""

from rushlight_nn.distributions.chi2 import *  # noqa: F403
from rushlight_nn.distributions.chi2 import __all__ as __all__
