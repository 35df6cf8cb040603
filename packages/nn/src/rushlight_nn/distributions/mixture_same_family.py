"""Mixtures of distributions of the same family."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of K distributions of the same family.

    Args:
        mixture_distribution: a :class:`Categorical` over the components.
        component_distribution: a batch of distributions, one for each component along the last batch dimension.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - `mixture_distribution`: batch shape (*) and K categories; `component_distribution`: batch shape (*, K).
        - Samples: (*sample_shape, *batch_shape, *event_shape), with the event shape of the components.

    Raises:
        ValueError: the shapes do not match, or `mixture_distribution` is not a Categorical.

    Example:
        >>> from rushlight.distributions import Categorical, MixtureSameFamily, Normal
        >>> weights = Categorical(torch.tensor([0.25, 0.75]))
        >>> components = Normal(torch.tensor([-4.0, 4.0]), 1.0)
        >>> MixtureSameFamily(weights, components).mean
        tensor(2.)
    """

    arg_constraints: Any = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "MixtureSameFamily(mixture_distribution): must be a Categorical, got "
                f"{type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "MixtureSameFamily(component_distribution): must be a Distribution, got "
                f"{type(component_distribution).__name__}"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        own, batch = tuple(mixture_distribution.batch_shape), tuple(component_distribution.batch_shape)
        for size, other in zip(own, batch[:-1], strict=False):
            if size not in (1, other) and other != 1:
                raise ValueError(
                    f"MixtureSameFamily(component_distribution): must have a batch shape whose leading dimensions "
                    f"broadcast with the batch shape {own} of mixture_distribution, got {batch}"
                )
        self._num_component = batch[-1] if batch else 0
        if mixture_distribution._num_events != self._num_component:
            raise ValueError(
                f"MixtureSameFamily: the mixture has {mixture_distribution._num_events} categories, but there are "
                f"{self._num_component} components"
            )
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        made: Any = super().expand(batch_shape, _instance)
        made._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        made._component_distribution = self._component_distribution.expand(
            (*batch_shape, self._num_component)
        )
        return made

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self) -> Tensor:
        """Return the weights of the components, of shape (..., K) followed by a 1 for each event dimension."""
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self._event_shape))

    @property
    def _component_dim(self) -> int:
        return -1 - len(self._event_shape)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._component_dim)

    @property
    def variance(self) -> Tensor:
        # The law of total variance: add the mean variance of the components and the variance of their means.
        weights, component = self._weights(), self._component_distribution
        within = (weights * component.variance).sum(self._component_dim)
        deviation = component.mean - self.mean.unsqueeze(self._component_dim)
        return within + (weights * deviation.square()).sum(self._component_dim)

    def cdf(self, value: Tensor) -> Tensor:
        probability = self._component_distribution.cdf(value.unsqueeze(self._component_dim))
        return (probability * self._weights()).sum(self._component_dim)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        component = self._component_distribution.log_prob(value.unsqueeze(self._component_dim))
        log_weights = self._mixture_distribution.logits.log_softmax(-1)
        return (component + log_weights).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with core.no_grad():
            dim, shape = self._component_dim, self._extended_shape(sample_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            index = chosen.reshape(tuple(chosen.shape) + (1,) * (1 + len(self._event_shape)))
            values = self._component_distribution.sample(sample_shape)
            wide = list(shape)
            wide.insert(len(wide) + 1 + dim, 1)
            return values.gather(dim, index.expand(wide)).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution!r},\n  {self._component_distribution!r})"
