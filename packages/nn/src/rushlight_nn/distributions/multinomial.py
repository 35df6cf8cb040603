"""The multinomial distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .over_categories import OverCategories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Multinomial"]


class Multinomial(OverCategories):
    """The multinomial distribution: the number of times that each of K classes occurs in `total_count` draws.

    The counts passed to `log_prob` may sum to less than `total_count`. `log_prob` uses their sum as the
    number of draws.

    Args:
        total_count: the number of draws, an int.
        probs: the probabilities, which are divided by their sum.
        logits: unnormalised log-probabilities, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*, K); all but the last dimension are the batch shape.
        - Samples: (*sample_shape, *batch_shape, K).

    Raises:
        ValueError: `total_count` is negative, or both or neither of `probs` and `logits` are given.
        NotImplementedError: `total_count` is a tensor.

    Example:
        >>> from rushlight.distributions import Multinomial
        >>> Multinomial(4, torch.tensor([1.0, 1.0])).log_prob(torch.tensor([2.0, 2.0])).exp()  # 6 / 16
        tensor(0.3750)
    """

    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"Multinomial(total_count): got {type(total_count).__name__}, needs one int for the whole batch"
            )
        if total_count < 0:
            raise ValueError(f"Multinomial(total_count): got {total_count}, needs at least 0")
        self.total_count = total_count
        super().__init__(Categorical(probs, logits, validate_args), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        chosen = self._categorical.sample((self.total_count, *sample_shape))
        shape = self._extended_shape(sample_shape)
        counts = core.zeros(shape, dtype=self.probs.dtype, device=self.probs.device)
        index = chosen.movedim(0, -1)
        return counts.scatter_add_(-1, index, core.ones_like(index, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # A class of probability 0 that does not occur contributes 0.
        logits = self.logits.expand(core.broadcast_shapes(value.shape, self.logits.shape))
        terms = core.where((value == 0) & (logits == -math.inf), 0.0, value * logits)
        return (value.sum(-1) + 1).lgamma() + (terms - (value + 1).lgamma()).sum(-1)

    def entropy(self) -> Tensor:
        # The entropy is -E log p. Each count is a binomial variable, which gives the expected logarithm of its
        # factorial.
        n = self.total_count
        binomial = Binomial(n, self.probs, validate_args=False)
        values = binomial.enumerate_support(False)[1:]
        expected = (binomial.log_prob(values).exp() * (values + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + expected
