"""rushlight_nn.distributions.utils, where PyTorch has it."""

from rushlight_nn.distributions.utils import *  # noqa: F403
from rushlight_nn.distributions.utils import __all__ as __all__
from rushlight_nn.distributions.utils import _standard_normal as _standard_normal
from rushlight_nn.distributions.utils import _sum_rightmost as _sum_rightmost
