"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from ..functional import logsigmoid
from . import constraints
from .gamma import Gamma
from .probs_or_logits import ProbsOrLogits
from .utils import broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """The negative binomial distribution: the number of successes before `total_count` failures.

    Args:
        total_count: the number of failures, which need not be an integer.
        probs: the probability of success.
        logits: ``log(probs / (1 - probs))``, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, a probability is outside of [0, 1), or
            `total_count` is negative.

    Example:
        >>> from rushlight.distributions import NegativeBinomial
        >>> NegativeBinomial(3, probs=0.5).mean
        tensor(3.)
    """

    arg_constraints: Any = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support: Any = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, given = self._given(probs, logits)
        (given,) = broadcast_all(given)
        count, self.__dict__[name] = broadcast_all(total_count, given)
        self.total_count: Tensor = count.to(given.dtype)
        super().__init__(self.param_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # The count has a Poisson distribution whose rate is drawn from a gamma distribution.
        with core.no_grad():
            count = self.total_count.clamp(min=core.finfo(self.total_count.dtype).tiny)
            rate = Gamma(count, (-self.logits).exp(), validate_args=False).sample(sample_shape)
            return core.poisson(core.where(self.total_count == 0, 0.0, rate))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        log_powers = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        log_binomial = (n + value).lgamma() - (value + 1).lgamma() - n.lgamma()
        # With total_count 0, the value is 0 with probability 1; the formula would be inf - inf.
        return log_powers + core.where(n + value == 0, 0.0, log_binomial)
