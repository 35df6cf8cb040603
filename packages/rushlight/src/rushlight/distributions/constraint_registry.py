"""rushlight_nn.distributions.constraint_registry, where PyTorch has it."""

from rushlight_nn.distributions.constraint_registry import *  # noqa: F403
from rushlight_nn.distributions.constraint_registry import __all__ as __all__
