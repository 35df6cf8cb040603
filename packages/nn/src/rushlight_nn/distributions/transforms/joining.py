"""Transforms that apply other transforms to the parts of a tensor: `CatTransform` and `StackTransform`."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .. import constraints
from ..utils import sum_rightmost
from .base import Transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Joined(Transform):
    """Base class of transforms that apply each of `transforms` to a part of the tensor along `dim`."""

    transforms: list[Transform]
    dim: int

    def _parts(self, value: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    @property
    def bijective(self) -> Any:
        return all(t.bijective for t in self.transforms)

    def _checked(self, value: Tensor) -> list[Tensor]:
        if not -value.dim() <= self.dim < value.dim():
            raise ValueError(
                f"{type(self).__name__}: got a tensor of {value.dim()} dimensions, which has no dimension {self.dim}"
            )
        return self._parts(value)

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(part) for t, part in zip(self.transforms, self._checked(x), strict=True)])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._checked(y), strict=True)])


def _transforms(name: str, tseq: Sequence[Transform], cache_size: int) -> list[Transform]:
    if not all(isinstance(t, Transform) for t in tseq):
        kinds = ", ".join(type(t).__name__ for t in tseq)
        raise TypeError(f"{name}(tseq): needs transforms, got {kinds}")
    return [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)


class CatTransform(_Joined):
    """Apply transforms to parts of a tensor along a dimension, and concatenate the results.

    Args:
        tseq: the transforms, one for each part.
        dim: the dimension.
        lengths: the lengths of the parts; every length is 1 by default.
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*, sum of the lengths, *).

    Raises:
        ValueError: the numbers of lengths and transforms differ, or the size of a tensor along `dim` is not the sum
            of the lengths.

    Example:
        >>> from rushlight.distributions import CatTransform, ExpTransform
        >>> from rushlight.distributions.transforms import identity_transform
        >>> transform = CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])
        >>> transform(torch.zeros(3))
        tensor([1., 0., 0.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms: Any = _transforms("CatTransform", tseq, cache_size)
        self.lengths: list[int] = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"CatTransform(lengths): got {len(self.lengths)} lengths, needs {len(self.transforms)}, one for each "
                "transform"
            )
        self.dim = dim

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The total length of the parts."""
        return sum(self.lengths)

    @property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, value: Tensor) -> list[Tensor]:
        if value.shape[self.dim] != self.length:
            raise ValueError(
                f"CatTransform: got size {value.shape[self.dim]} in dimension {self.dim}, needs {self.length}"
            )
        return list(value.split(self.lengths, self.dim))

    def _join(self, parts: list[Tensor]) -> Tensor:
        return core.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        logs = []
        for t, before, after in zip(self.transforms, self._checked(x), self._checked(y), strict=True):
            logs.append(sum_rightmost(t.log_abs_det_jacobian(before, after), self.event_dim - t.event_dim))
        # If the joined dimension belongs to the event, the determinants of the parts are multiplied.
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return core.cat(logs, dim) if dim < 0 else sum(logs[1:], logs[0])


class StackTransform(_Joined):
    """Apply `tseq[i]` to slice i of a tensor along a dimension, and stack the results.

    Args:
        tseq: the transforms, one for each part.
        dim: the dimension.
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*, number of transforms, *).

    Raises:
        ValueError: the size of a tensor along `dim` is not the number of transforms (raised when the tensor is transformed).

    Example:
        >>> from rushlight.distributions import ExpTransform, StackTransform
        >>> from rushlight.distributions.transforms import identity_transform
        >>> StackTransform([ExpTransform(), identity_transform])(torch.zeros(2, 3))
        tensor([[1., 1., 1.],
                [0., 0., 0.]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms: Any = _transforms("StackTransform", tseq, cache_size)
        self.dim = dim

    @property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, value: Tensor) -> list[Tensor]:
        if value.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"StackTransform: got size {value.shape[self.dim]} in dimension {self.dim}, "
                f"needs {len(self.transforms)}"
            )
        return list(value.unbind(self.dim))

    def _join(self, parts: list[Tensor]) -> Tensor:
        return core.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self._join(
            [
                t.log_abs_det_jacobian(before, after)
                for t, before, after in zip(self.transforms, self._checked(x), self._checked(y), strict=True)
            ]
        )
