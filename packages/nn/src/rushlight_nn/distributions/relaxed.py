"""Choices made smooth by a temperature."""

from __future__ import annotations

from rushlight_core import Tensor

from .transformed_distribution import TransformedDistribution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Relaxed(TransformedDistribution):
    """Transformed from a distribution that has the temperature and the chances."""

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
        """Their log-odds, or their logarithms where they sum to 1."""
        logits: Tensor = self.base_dist.logits
        return logits
