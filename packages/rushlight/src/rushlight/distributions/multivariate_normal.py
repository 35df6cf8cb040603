"""rushlight_nn.distributions.multivariate_normal, where PyTorch has it."""

from rushlight_nn.distributions.multivariate_normal import *  # noqa: F403
from rushlight_nn.distributions.multivariate_normal import Distribution as Distribution
from rushlight_nn.distributions.multivariate_normal import __all__ as __all__
from rushlight_nn.distributions.multivariate_normal import _batch_mahalanobis as _batch_mahalanobis
from rushlight_nn.distributions.multivariate_normal import _batch_mv as _batch_mv
from rushlight_nn.distributions.multivariate_normal import (
    _precision_to_scale_tril as _precision_to_scale_tril,
)
