"""rushlight_nn.distributions.bernoulli, where PyTorch has it."""

from rushlight_nn.distributions.bernoulli import *  # noqa: F403
from rushlight_nn.distributions.bernoulli import __all__ as __all__
