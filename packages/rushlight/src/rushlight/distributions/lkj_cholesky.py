"""rushlight_nn.distributions.lkj_cholesky, where PyTorch has it."""

from rushlight_nn.distributions.lkj_cholesky import *  # noqa: F403
from rushlight_nn.distributions.lkj_cholesky import __all__ as __all__
