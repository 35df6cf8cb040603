"""rushlight_nn.distributions.generalized_pareto, where PyTorch has it."""

from rushlight_nn.distributions.generalized_pareto import *  # noqa: F403
from rushlight_nn.distributions.generalized_pareto import __all__ as __all__
