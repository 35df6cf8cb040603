"""The Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from ..functional import binary_cross_entropy_with_logits, softplus
from . import constraints
from .exp_family import ExponentialFamily
from .probs_or_logits import ProbsOrLogits
from .utils import broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability `probs`, otherwise 0.

    Args:
        probs: the probability of the value 1.
        logits: ``log(probs / (1 - probs))``, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, or a probability is not between 0 and 1.

    Example:
        >>> from rushlight.distributions import Bernoulli
        >>> coin = Bernoulli(probs=0.3)
        >>> coin.mean, coin.log_prob(torch.tensor(1.0))
        (tensor(0.3000), tensor(-1.2040))
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, given = self._given(probs, logits)
        (self.__dict__[name],) = broadcast_all(given)
        super().__init__(self.param_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        likelier = (self.probs > 0.5).to(self.probs.dtype)
        return core.where(self.probs == 0.5, float("nan"), likelier)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with core.no_grad():
            return core.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = core.broadcast_tensors(self.logits, value.to(self._param.dtype))
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = core.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(2, *(1 for _ in self._batch_shape))
        return values.expand(2, *self._batch_shape) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return softplus(x)

    _mean_carrier_measure: Any = 0
