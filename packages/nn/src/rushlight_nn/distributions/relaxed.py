"""The base class of relaxed (continuous) versions of discrete distributions."""

from __future__ import annotations

from rushlight_core import Tensor

from .transformed_distribution import TransformedDistribution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Relaxed(TransformedDistribution):
    """Base class of transformed distributions whose base distribution has a temperature and probabilities."""

    has_rsample = True
    base_dist: Any

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        probs: Tensor = self.base_dist.probs
        return probs

    @property
    def logits(self) -> Tensor:
        """The log-odds of binary probabilities, or the logarithms of probabilities that sum to 1."""
        logits: Tensor = self.base_dist.logits
        return logits
