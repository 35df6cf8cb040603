"""The chi-squared distribution."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor

from . import constraints
from .gamma import Gamma
from .utils import broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution: the sum of the squares of `df` independent standard normal variables.

    Args:
        df: the degrees of freedom.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: `df` is not positive.

    Example:
        >>> from rushlight.distributions import Chi2
        >>> Chi2(3.0).mean, Chi2(3.0).variance
        (tensor(3.), tensor(6.))
    """

    arg_constraints: Any = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return 2 * self.concentration

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.concentration, made.rate = self.concentration.expand(batch_shape), self.rate.expand(batch_shape)
        return made
