"""Categorical distributions over one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .categorical import Categorical
from .over_categories import OverCategories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OverCategories):
    """The categorical distribution over one-hot vectors of K elements.

    Args:
        probs: the probabilities, which are divided by their sum.
        logits: unnormalised log-probabilities, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*, K); all but the last dimension are the batch shape.
        - Samples: (*sample_shape, *batch_shape, K).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, the given tensor is 0-dimensional, or a probability is
            negative.

    Example:
        >>> from rushlight.distributions import OneHotCategorical
        >>> OneHotCategorical(torch.tensor([0.0, 1.0, 0.0])).sample()
        tensor([0., 1., 0.])
    """

    support: Any = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(Categorical(probs, logits, validate_args), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        zeros = core.zeros(
            (*index.shape, self._event_shape[0]), dtype=self._param.dtype, device=self._param.device
        )
        return zeros.scatter_(-1, index.unsqueeze(-1), 1.0)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        size = self._event_shape[0]
        values = core.eye(size, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(size, *(1 for _ in self._batch_shape), size)
        return values.expand(size, *self._batch_shape, size) if expand else values

    def __repr__(self) -> str:
        return repr(self._categorical).replace("Categorical", type(self).__name__, 1)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A :class:`OneHotCategorical` whose samples pass their gradients to the probabilities unchanged.

    This computation of gradients is called the straight-through estimator (Bengio, Léonard and Courville 2013).

    Args:
        probs: the probabilities, which are divided by their sum.
        logits: unnormalised log-probabilities, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*, K); all but the last dimension are the batch shape.
        - Samples: (*sample_shape, *batch_shape, K).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, the given tensor is 0-dimensional, or a probability is
            negative.

    Example:
        >>> from rushlight.distributions import OneHotCategoricalStraightThrough
        >>> probs = torch.tensor([0.5, 0.5], requires_grad=True)
        >>> sample = OneHotCategoricalStraightThrough(probs).rsample()
        >>> sample.requires_grad, float(sample.sum())
        (True, 1.0)
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs  # cached by `_categorical`, so that all uses share one tensor
        return self.sample(sample_shape) + (probs - probs.detach())
