"""Probability distributions: rushlight_nn.distributions."""

import rushlight_nn.distributions as _package
from rushlight_nn.distributions import *  # noqa: F403

__all__ = list(_package.__all__)
