"""rushlight_nn.distributions.transforms, where PyTorch has it."""

from rushlight_nn.distributions.transforms import *  # noqa: F403
from rushlight_nn.distributions.transforms import __all__ as __all__
