"""The distribution of a transformed variable."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of a random variable to which transforms are applied.

    The density is computed from the density of `base_distribution` and the Jacobian determinants of the transforms.

    Args:
        base_distribution: the distribution of the variable before the transforms.
        transforms: a transform, or a list of transforms that are applied in this order.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - The batch shape is the batch shape of the base, without the dimensions that the transforms treat as event
          dimensions.
        - Samples: (*sample_shape, *batch_shape, *event_shape).

    Raises:
        ValueError: an argument is not a transform, or samples of `base_distribution` have fewer dimensions
            than the transforms require.

    Example:
        >>> from rushlight.distributions import ExpTransform, Normal, TransformedDistribution
        >>> base = Normal(0.0, 1.0)
        >>> dist = TransformedDistribution(base, [ExpTransform()])  # log-normal
        >>> dist.log_prob(torch.tensor(1.0)).exp()
        tensor(0.3989)
    """

    arg_constraints: Any = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        given = list(transforms) if isinstance(transforms, Sequence) else [transforms]
        if not all(isinstance(t, Transform) for t in given):
            raise ValueError(
                f"{type(self).__name__}(transforms): needs a transform or a sequence of transforms, got {transforms!r}"
            )
        self.transforms = given
        whole = ComposeTransform(given)
        shape = tuple(base_distribution.batch_shape) + tuple(base_distribution.event_shape)
        needed = whole.domain.event_dim
        if len(shape) < needed:
            raise ValueError(
                f"{type(self).__name__}(base_distribution): must have samples of at least {needed} dimensions, as the "
                f"transforms require, got {len(shape)}"
            )
        # Expand the base if the transforms have parameters of larger shapes. If the transforms need events with more
        # dimensions, reinterpret batch dimensions of the base as event dimensions.
        wide = tuple(whole.inverse_shape(whole.forward_shape(shape)))
        if wide != shape:
            base_distribution = base_distribution.expand(
                wide[: len(wide) - len(base_distribution.event_shape)]
            )
        more = needed - len(base_distribution.event_shape)
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        result = tuple(whole.forward_shape(wide))
        dims = whole.codomain.event_dim + max(len(base_distribution.event_shape) - needed, 0)
        cut = len(result) - dims
        super().__init__(result[:cut], result[cut:], validate_args)

    @property
    def has_rsample(self) -> Any:
        return self.base_dist.has_rsample

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        made: Any = super().expand(batch_shape, _instance)
        whole = ComposeTransform(self.transforms)
        shape = tuple(whole.inverse_shape((*batch_shape, *self.event_shape)))
        made.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return made

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def _push_forward(self, value: Tensor) -> Tensor:
        for transform in self.transforms:
            value = transform(value)
        return value

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with core.no_grad():
            return self._push_forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._push_forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dims, total = len(self.event_shape), None
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(before, value)
            part = sum_rightmost(jacobian, dims - transform.domain.event_dim)
            total = part if total is None else total + part
            value = before
        base = sum_rightmost(self.base_dist.log_prob(value), dims - len(self.base_dist.event_shape))
        return base if total is None else base - total

    def _rises(self) -> Any:
        """Return 1 if the composed transform is increasing, and -1 if it is decreasing."""
        return ComposeTransform(self.transforms).sign

    def _reflected(self, probability: Tensor) -> Tensor:
        """Return `probability`, or 1 - `probability` if the transform is decreasing."""
        sign = self._rises()
        if isinstance(sign, int):
            return probability if sign == 1 else 1 - probability
        return sign * (probability - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._reflected(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._push_forward(self.base_dist.icdf(self._reflected(value)))
