"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from ..functional import softplus
from . import constraints
from .probs_or_logits import ProbsOrLogits
from .utils import broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits):
    """The binomial distribution: the number of successes in `total_count` trials.

    Args:
        total_count: the number of trials.
        probs: the probability of success.
        logits: ``log(probs / (1 - probs))``, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, a probability is not between 0 and 1,
            or `total_count` is not a nonnegative integer.

    Example:
        >>> from rushlight.distributions import Binomial
        >>> Binomial(4, probs=0.5).log_prob(torch.tensor(2.0)).exp()  # 6 / 16
        tensor(0.3750)
    """

    arg_constraints: Any = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, given = self._given(probs, logits)
        (given,) = broadcast_all(given)
        count, self.__dict__[name] = broadcast_all(total_count, given)
        self.total_count: Tensor = count.to(given.dtype)
        super().__init__(self.param_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with core.no_grad():
            return core.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * softplus(self.logits)

    def entropy(self) -> Tensor:
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        total = int(self.total_count.max())
        if not bool((self.total_count == total).all()):
            raise NotImplementedError(
                "Binomial.enumerate_support: total_count must be the same for the whole batch, "
                f"got {int(self.total_count.min())} to {total}"
            )
        values = core.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(-1, *(1 for _ in self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
