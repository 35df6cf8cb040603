# ruff: noqa: N999
"""rushlight_nn.distributions.student_t, where PyTorch has it."""

from rushlight_nn.distributions.student_t import *  # noqa: F403
from rushlight_nn.distributions.student_t import __all__ as __all__
