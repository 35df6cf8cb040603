"""The geometric distribution."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from ..functional import binary_cross_entropy_with_logits
from . import constraints
from .probs_or_logits import ProbsOrLogits
from .utils import broadcast_all, open_uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """The geometric distribution: the number of failures before the first success.

    Args:
        probs: the probability of success.
        logits: ``log(probs / (1 - probs))``, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, or a probability is outside of (0, 1].

    Example:
        >>> from rushlight.distributions import Geometric
        >>> Geometric(probs=0.25).mean  # (1 - probs) / probs
        tensor(3.)
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, given = self._given(probs, logits)
        (self.__dict__[name],) = broadcast_all(given)
        super().__init__(self.param_shape, validate_args=validate_args)
        if self._validate_args and name == "probs":
            self._check("probs", constraints.greater_than(0.0), self.probs)

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return core.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with core.no_grad():
            u = open_uniform(self._extended_shape(sample_shape), self.probs)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return core.special.xlog1py(value, -self.probs) + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
