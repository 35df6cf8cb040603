"""rushlight_nn.distributions.lowrank_multivariate_normal, where PyTorch has it."""

from rushlight_nn.distributions.lowrank_multivariate_normal import *  # noqa: F403
from rushlight_nn.distributions.lowrank_multivariate_normal import __all__ as __all__
