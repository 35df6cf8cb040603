"""A distribution that treats batch dimensions of another distribution as event dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor

from . import constraints
from .distribution import Distribution
from .utils import sum_rightmost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution that treats the last batch dimensions of another distribution as event dimensions.

    `log_prob` sums over the reinterpreted dimensions.

    Args:
        base_distribution: the distribution whose batch dimensions are reinterpreted.
        reinterpreted_batch_ndims: number of batch dimensions that belong to the event.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - The last `reinterpreted_batch_ndims` dimensions of the base's batch shape move to the front of the event shape.
        - Samples: (*sample_shape, *batch_shape, *event_shape).

    Raises:
        ValueError: the batch has fewer dimensions than `reinterpreted_batch_ndims`.

    Example:
        >>> from rushlight.distributions import Independent, Normal
        >>> dist = Independent(Normal(torch.zeros(3), 1.0), 1)
        >>> dist.batch_shape, dist.event_shape, dist.log_prob(torch.zeros(3)).shape
        (torch.Size([]), torch.Size([3]), torch.Size([]))
    """

    arg_constraints: Any = {}

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch, event = tuple(base_distribution.batch_shape), tuple(base_distribution.event_shape)
        count = reinterpreted_batch_ndims
        if count > len(batch):
            raise ValueError(
                f"Independent(reinterpreted_batch_ndims): got {count}, needs at most {len(batch)}, the number of batch "
                "dimensions"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = count
        super().__init__(batch[: len(batch) - count], batch[len(batch) - count :] + event, validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        made: Any = super().expand(batch_shape, _instance)
        inner = tuple(self.base_dist.batch_shape)
        kept = inner[len(inner) - self.reinterpreted_batch_ndims :]
        made.base_dist = self.base_dist.expand((*batch_shape, *kept))
        return made

    @property
    def has_rsample(self) -> Any:
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> Any:
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        support, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(support, count) if count else support

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError(
                "Independent.enumerate_support: requires reinterpreted_batch_ndims=0, "
                f"got {self.reinterpreted_batch_ndims}"
            )
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
