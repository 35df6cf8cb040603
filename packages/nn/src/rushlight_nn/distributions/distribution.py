"""The base class of probability distributions."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Size, Tensor

from . import constraints
from .utils import lazy_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["Distribution"]

_validate = __debug__


class Distribution:
    """The base class of distributions: a batch of independent distributions over tensors of the same shape.

    A subclass defines the constraints of its parameters in `arg_constraints` and the set of its values in `support`. The
    subclass sets its parameters as attributes before it calls this constructor, and defines `log_prob` and either `rsample`
    or `sample`.

    Args:
        batch_shape: the shape of the batch of distributions.
        event_shape: the shape of one sample of one distribution.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Samples: (*sample_shape, *batch_shape, *event_shape).
        - `log_prob`: (*sample_shape, *batch_shape).

    Raises:
        ValueError: a parameter violates its constraint in `arg_constraints`.
        NotImplementedError: a method is called that the subclass does not define.

    Example:
        >>> from rushlight.distributions import constraints, Distribution
        >>> class Point(Distribution):
        ...     arg_constraints = {}
        ...     support = constraints.real
        ...
        ...     def __init__(self, loc):
        ...         self.loc = loc
        ...         super().__init__(loc.shape)
        ...
        ...     def sample(self, sample_shape=()):
        ...         return self.loc.expand(*sample_shape, *self.batch_shape)
        >>> Point(torch.tensor([1.0, 2.0])).sample((2,))
        tensor([[1., 2.],
                [1., 2.]])
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    arg_constraints: Any = {}
    _validate_args: bool | None = None  # the value of validate_args before this constructor is called

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        self._validate_args = _validate if validate_args is None else validate_args
        if not self._validate_args:
            return
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property):
                continue  # this parameter would be computed from another parameter, which is checked
            self._check(name, constraint, getattr(self, name))

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set the default value of `validate_args`, which states whether distributions check their arguments."""
        global _validate
        if not isinstance(value, bool):
            raise ValueError(f"set_default_validate_args(value): got {type(value).__name__}, needs a bool")
        _validate = value

    def _check(self, name: str, constraint: constraints.Constraint, value: Tensor) -> None:
        """Raise ValueError unless every element of `value` satisfies the constraint."""
        fits = constraint.check(value)
        if not bool(fits.all()):
            raise ValueError(
                f"{type(self).__name__}({name}): must be {constraint._needs()}, got {value!r}\n"
                f"{int((~fits).sum())} of {fits.numel()} elements do not satisfy the constraint {constraint!r}"
            )

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError if `value` does not broadcast with this distribution's shape, or lies outside of its support."""
        where = f"{type(self).__name__}.log_prob(value)"
        if not isinstance(value, Tensor):
            raise ValueError(f"{where}: got {type(value).__name__}, needs a tensor")
        shape, event, batch = tuple(value.shape), tuple(self._event_shape), tuple(self._batch_shape)
        if shape[len(shape) - len(event) :] != event:
            raise ValueError(
                f"{where}: got shape {shape}, needs a shape that ends with the event shape {event}"
            )
        for size, own in zip(reversed(shape), reversed(batch + event), strict=False):
            if size != own and size != 1 and own != 1:
                raise ValueError(
                    f"{where}: shape {shape} does not broadcast with the distribution's shape {batch + event}"
                )
        try:
            support = self.support
        except NotImplementedError:
            return  # a user-defined class without `support`
        if not constraints.is_dependent(support):
            self._check("value", support, value)

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return the object that `expand` fills: `_instance`, or a new instance of this class if `_instance` is None."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{type(self).__name__}.expand: a subclass that defines a constructor must define expand"
            )
        return object.__new__(type(self)) if _instance is None else _instance

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of each distribution in the batch."""
        return self._event_shape

    @property
    def support(self) -> Any:
        """The set of possible values, as a constraint."""
        raise self._lacks("support")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """Return a distribution with the batch shape `batch_shape`, whose parameters are expanded views of the current
        parameters."""
        made: Any = object.__new__(type(self)) if _instance is None else _instance
        made.__dict__.update(self.__dict__)
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if value is not None:
                known = (
                    not constraints.is_dependent(constraint) or constraint._event_dim is not NotImplemented
                )
                dims = constraint.event_dim if known else 0
                made.__dict__[name] = value.expand((*batch_shape, *value.shape[value.dim() - dims :]))
        made._batch_shape = Size(batch_shape)
        return made

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        """Return the shape of samples: (*sample_shape, *batch_shape, *event_shape)."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return reparameterized, differentiable samples of shape (*sample_shape, *batch_shape, *event_shape)."""
        raise NotImplementedError(
            f"{type(self).__name__}.rsample(): samples are not differentiable in the parameters\nhint: use sample()"
        )

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return samples of shape (*sample_shape, *batch_shape, *event_shape), without gradients."""
        with core.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """Return `sample((n,))`."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density or probability of `value`, which is broadcast with the parameters."""
        raise self._lacks("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability that a sample is at most `value`."""
        raise self._lacks("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile function, the inverse of `cdf`, at the probability `value`."""
        raise self._lacks("icdf")

    def entropy(self) -> Tensor:
        """Return the entropy in nats, a tensor of shape `batch_shape`."""
        raise self._lacks("entropy")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of the support, along a new first dimension."""
        raise self._lacks("enumerate_support")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        """The mode, the most probable value."""
        raise self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def _lacks(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {name}")

    def __repr__(self) -> str:
        parts = []
        for name in self.arg_constraints:
            value = self.__dict__.get(name)
            if value is None and type(getattr(type(self), name, None)) is property:
                value = getattr(self, name)
            if value is not None:
                parts.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(parts)})"
