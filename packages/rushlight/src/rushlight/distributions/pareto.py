"""rushlight_nn.distributions.pareto, where PyTorch has it."""

from rushlight_nn.distributions.pareto import *  # noqa: F403
from rushlight_nn.distributions.pareto import __all__ as __all__
