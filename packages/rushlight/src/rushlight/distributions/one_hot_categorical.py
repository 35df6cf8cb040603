"""rushlight_nn.distributions.one_hot_categorical, where PyTorch has it."""

from rushlight_nn.distributions.one_hot_categorical import *  # noqa: F403
from rushlight_nn.distributions.one_hot_categorical import __all__ as __all__
