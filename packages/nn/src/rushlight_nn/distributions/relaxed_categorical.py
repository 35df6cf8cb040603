"""Relaxed choices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, open_uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithms of :class:`RelaxedOneHotCategorical` variables, which keep digits where those are nearly 0.

    C. J. Maddison, A. Mnih, Y. W. Teh, "The concrete distribution", 2017, appendix C.3.

    Raises:
        ValueError: not exactly one of probs and logits is given, or a probability is negative.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # such that the sum of the exponentials is 1: nobody checks that
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made._categorical = self._categorical.expand(batch_shape)
        return made

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The parameter's shape."""
        return self._categorical.param_shape

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = open_uniform(self._extended_shape(sample_shape), self._categorical._param)
        gumbels = -(-u.log()).log()
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        count = self._event_shape[0]
        logits, value = core.broadcast_tensors(self.logits, value)
        (temperature,) = broadcast_all(self.temperature)
        score = logits - value * temperature
        return (
            math.lgamma(count)
            + (count - 1) * temperature.log()
            + (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        )


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors that sum to 1 and depend smoothly on `probs` or `logits`: one-hot ones as the temperature goes to 0.

    C. J. Maddison, A. Mnih, Y. W. Teh, "The concrete distribution", 2017; E. Jang, S. Gu, B. Poole, "Categorical
    reparameterization with Gumbel-softmax", 2017.

    Raises:
        ValueError: not exactly one of probs and logits is given, or a probability is negative.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self.base_dist.logits
