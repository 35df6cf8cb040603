"""The categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .probs_or_logits import ProbsOrLogits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """The categorical distribution over the integers from 0 to K - 1.

    Args:
        probs: the probabilities, which are divided by their sum.
        logits: unnormalised log-probabilities, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*, K); all but the last dimension are the batch shape.
        - Samples: (*sample_shape, *batch_shape), int64.

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, the given tensor is 0-dimensional, or a probability is
            negative.

    Example:
        >>> from rushlight.distributions import Categorical
        >>> Categorical(torch.tensor([1.0, 1.0, 2.0])).probs
        tensor([0.2500, 0.2500, 0.5000])
    """

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        shape = self._set_categories(probs, logits)
        super().__init__(shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    @property
    def mean(self) -> Tensor:
        return core.full(self._batch_shape, math.nan, dtype=self._param.dtype, device=self._param.device)

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self._param.argmax(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape, count = self._extended_shape(sample_shape), math.prod(sample_shape)
        if count == 0:
            return core.empty(shape, dtype=core.int64, device=self._param.device)
        with core.no_grad():
            drawn = core.multinomial(self.probs.reshape(-1, self._num_events), count, True).mT
        return drawn.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        shape = core.broadcast_shapes(value.shape, self._batch_shape)
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, value.to(core.int64).expand(shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        # A category of probability 0 contributes 0, although its logarithm is infinite.
        logits = self.logits.clamp(min=core.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = core.arange(self._num_events, device=self._param.device)
        values = values.reshape(-1, *(1 for _ in self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
