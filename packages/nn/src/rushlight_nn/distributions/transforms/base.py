"""The base class of transforms, and transforms that are made from other transforms."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence

from rushlight_core import Size, Tensor

from .. import constraints
from ..utils import sum_rightmost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Transform:
    """The base class of transforms: functions from the set `domain` to the set `codomain`.

    A subclass defines `_call`, `_inverse` and, if it is `bijective`, `log_abs_det_jacobian`. A transform that is a monotonic
    elementwise function also defines `sign`.

    Args:
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Output of `log_abs_det_jacobian`: (*), the input's shape without the event dimensions.

    Raises:
        ValueError: `cache_size` is neither 0 nor 1.

    Example:
        >>> from rushlight.distributions import constraints, Transform
        >>> class Double(Transform):
        ...     domain = codomain = constraints.real
        ...     bijective = True
        ...     sign = 1
        ...
        ...     def _call(self, x):
        ...         return 2 * x
        ...
        ...     def _inverse(self, y):
        ...         return y / 2
        >>> Double().inv(torch.tensor([4.0]))
        tensor([2.])
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"{type(self).__name__}(cache_size): got {cache_size}, needs 0 or 1")
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] = (None, None)
        self._inv: Any = None

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_inv"] = None  # a weak reference, which cannot be pickled
        return state

    @property
    def event_dim(self) -> int:
        """The number of dimensions of an event, which is the same in the domain and the codomain."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError(
            f"{type(self).__name__}.event_dim: must be equal in the domain and the codomain, got "
            f"{self.domain.event_dim} and {self.codomain.event_dim}"
        )

    @property
    def inv(self) -> Transform:
        """The inverse transform. The inverse of the inverse is the transform itself: `t.inv.inv is t`."""
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """1 if the function is increasing, -1 if it is decreasing."""
        raise NotImplementedError(f"{type(self).__name__} does not define sign, because it is not monotonic")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return this transform with a cache of size `cache_size`."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self).__name__} does not define with_cache")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__: Any = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the transform to `x`, and return the result."""
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached[0]:
            self._cached = (x, self._call(x))
        return self._cached[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        """Apply the inverse transform to `y`, and return the result."""
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached[1]:
            self._cached = (self._inverse(y), y)
        return self._cached[0]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |det dy/dx| for each event `x` with the result `y`, where dy/dx is the Jacobian matrix."""
        raise NotImplementedError(f"{type(self).__name__} does not define log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape of the result for an argument of shape `shape`."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape of the argument for a result of shape `shape`."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform. The transform and its inverse share a cache."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Any = transform

    @property
    def domain(self) -> Any:
        return self._inv.codomain

    @property
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> Any:
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """The composition of the transforms in `parts`, which are applied in the order of the list.

    Args:
        parts: the transforms; an empty list is the identity.
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input: a shape that the first transform accepts. Output: the shape of the last transform's output.

    Example:
        >>> from rushlight.distributions import AffineTransform, ComposeTransform, ExpTransform
        >>> ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])(torch.tensor(0.0))
        tensor(3.)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts: list[Transform] = list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__: Any = object.__hash__

    @property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        # Compute the number of event dimensions from the last part to the first. A part may need more dimensions.
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _widened(self.parts[0].domain, dims)

    @property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _widened(self.parts[-1].codomain, dims)

    @property
    def bijective(self) -> Any:
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv, inverse._inv = weakref.ref(inverse), weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return x.new_zeros(x.shape)
        # The argument of each part, followed by the result of the last part, which is y.
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        total: Any = 0
        dims = self.domain.event_dim
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            jacobian = part.log_abs_det_jacobian(before, after)
            total = total + sum_rightmost(jacobian, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Sequence[int]) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


def _widened(constraint: Any, dims: int) -> Any:
    """Return `constraint` with additional event dimensions, so that an event has `dims` dimensions."""
    more = dims - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


identity_transform: ComposeTransform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform that treats additional dimensions as part of an event.

    The Jacobian determinants of `base_transform` are multiplied over the additional dimensions.

    Args:
        base_transform: the transform whose batch dimensions are reinterpreted.
        reinterpreted_batch_ndims: number of dimensions that are added to an event.
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input and output: (*), any shape.

    Raises:
        ValueError: a tensor has too few dimensions (raised when the tensor is transformed).

    Example:
        >>> from rushlight.distributions import ExpTransform, IndependentTransform
        >>> transform = IndependentTransform(ExpTransform(), 1)
        >>> x = torch.ones(2, 3)
        >>> transform.log_abs_det_jacobian(x, transform(x))
        tensor([3., 3.])
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform: Transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> Any:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        _needs_dimensions(self, x, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _needs_dimensions(self, y, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def _needs_dimensions(transform: Transform, value: Tensor, dims: int) -> None:
    if value.dim() < dims:
        raise ValueError(
            f"{type(transform).__name__}: got a tensor of {value.dim()} dimensions, needs at least {dims}"
        )


class ReshapeTransform(Transform):
    """A transform that reshapes events.

    Args:
        in_shape: shape of the events.
        out_shape: shape of the transformed events.
        cache_size: 0 for no cache, or 1 to cache the last input and output, so that inverting this output
            returns exactly this input.

    Shape:
        - Input: (*, *in_shape). Output: (*, *out_shape).

    Raises:
        ValueError: the shapes have different numbers of elements.

    Example:
        >>> from rushlight.distributions import ReshapeTransform
        >>> ReshapeTransform((4,), (2, 2))(torch.arange(4.0))
        tensor([[0., 1.],
                [2., 3.]])
    """

    in_shape: Size
    out_shape: Size

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(in_shape) != math.prod(out_shape):
            raise ValueError(
                f"ReshapeTransform(in_shape, out_shape): {tuple(in_shape)} and {tuple(out_shape)} have different "
                "numbers of elements"
            )
        super().__init__(cache_size=cache_size)

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return _replace_end(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        return _replace_end(shape, self.out_shape, self.in_shape)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ReshapeTransform)
            and self.in_shape == other.in_shape
            and self.out_shape == other.out_shape
        )

    __hash__: Any = object.__hash__


def _replace_end(shape: Sequence[int], old: Sequence[int], new: Sequence[int]) -> Size:
    cut = len(shape) - len(old)
    if cut < 0 or tuple(shape[cut:]) != tuple(old):
        raise ValueError(
            f"ReshapeTransform: got shape {tuple(shape)}, needs a shape that ends with {tuple(old)}"
        )
    return Size((*shape[:cut], *new))
