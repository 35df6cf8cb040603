"""rushlight_nn.distributions.utils, where PyTorch has it."""

from rushlight_nn.distributions.utils import *  # noqa: F403
from rushlight_nn.distributions.utils import __all__ as __all__
