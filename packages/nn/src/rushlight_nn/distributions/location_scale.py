"""The base class of distributions with a location and a scale."""

from __future__ import annotations

from rushlight_core import Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LocationScale(Distribution):
    """Base class of distributions of loc + scale * z, where the distribution of z has no parameters."""

    loc: Tensor
    scale: Tensor

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _standard(self, value: Tensor) -> Tensor:
        """Check `value`, and return z = (value - loc) / scale."""
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale
