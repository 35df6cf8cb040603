"""Choices as vectors with a single one."""

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
    """As :class:`Categorical`, over vectors of K with a one where the choice is.

    Raises:
        ValueError: as there.
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
    """The same, whose samples hand their gradient to the probabilities as it is.

    Y. Bengio, N. Léonard, A. Courville, "Estimating or propagating gradients through stochastic neurons for conditional
    computation", 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs  # kept by the choices, so that gradients meet there
        return self.sample(sample_shape) + (probs - probs.detach())
