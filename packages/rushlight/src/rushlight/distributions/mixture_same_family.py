"""rushlight_nn.distributions.mixture_same_family, where PyTorch has it."""

from rushlight_nn.distributions.mixture_same_family import *  # noqa: F403
from rushlight_nn.distributions.mixture_same_family import __all__ as __all__
