"""rushlight_nn.distributions.relaxed_bernoulli, where PyTorch has it."""

from rushlight_nn.distributions.relaxed_bernoulli import *  # noqa: F403
from rushlight_nn.distributions.relaxed_bernoulli import __all__ as __all__
