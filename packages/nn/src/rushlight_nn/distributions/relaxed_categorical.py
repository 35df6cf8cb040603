"""Relaxed categorical distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .categorical import Categorical
from .over_categories import OverCategories
from .relaxed import Relaxed
from .transforms import ExpTransform
from .utils import broadcast_all, open_uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OverCategories):
    """The distribution of the logarithms of :class:`RelaxedOneHotCategorical` variables.

    Logarithms remain accurate where the variables are nearly 0 (Maddison, Mnih and Teh 2017, appendix C.3).

    Args:
        temperature: the temperature; samples approach the logarithms of one-hot vectors as the temperature decreases.
        probs: the probabilities, which are divided by their sum.
        logits: unnormalised log-probabilities, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*, K); all but the last dimension are the batch shape.
        - Samples: (*sample_shape, *batch_shape, K).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, or a probability is negative.

    Example:
        >>> from rushlight.distributions.relaxed_categorical import ExpRelaxedCategorical
        >>> dist = ExpRelaxedCategorical(torch.tensor(0.5), probs=torch.tensor([0.2, 0.8]))
        >>> dist.sample().exp().sum()
        tensor(1.)
    """

    support: Any = constraints.real_vector  # the check does not include that the exponentials sum to 1
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(Categorical(probs, logits), validate_args)

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


class RelaxedOneHotCategorical(Relaxed):
    """A relaxation of :class:`OneHotCategorical`: vectors that sum to 1 and depend smoothly on `probs`.

    This distribution is also called the concrete distribution (Maddison, Mnih and Teh 2017; Jang, Gu and Poole 2017).

    Args:
        temperature: the temperature; samples approach one-hot vectors as the temperature decreases.
        probs: the probabilities, which are divided by their sum.
        logits: unnormalised log-probabilities, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*, K); all but the last dimension are the batch shape.
        - Samples: (*sample_shape, *batch_shape, K).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, or a probability is negative.

    Example:
        >>> from rushlight.distributions import RelaxedOneHotCategorical
        >>> RelaxedOneHotCategorical(torch.tensor(0.5), probs=torch.tensor([0.2, 0.8])).rsample().sum()
        tensor(1.)
    """

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
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
