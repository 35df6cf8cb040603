"""Constraints: sets of values that define valid parameters and the supports of distributions.

`constraint.check(value)` returns whether each event of `value` belongs to the set. An event spans the last `event_dim`
dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import rushlight_core as core
from rushlight_core import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "MixtureSameFamilyConstraint",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """The base class of constraints, the sets of values against which arguments and samples are checked.

    `is_discrete` states whether the set is discrete, and `event_dim` is the number of dimensions of an event.

    Shape:
        - `check(value)` for a value of shape (*, *event) returns a bool tensor of shape (*).

    Raises:
        NotImplementedError: the subclass does not define `check` (raised when `check` is called).

    Example:
        >>> from rushlight.distributions import constraints
        >>> constraints.positive.check(torch.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Return whether each event of `value` belongs to the set: a bool tensor without the event dimensions."""
        raise NotImplementedError(f"{type(self).__name__} does not define the method check()")

    def __repr__(self) -> str:
        return f"{_shown(type(self))}()"

    def _needs(self) -> str:
        """Return a description of the set for error messages."""
        return f"in the set {self!r}"


def _shown(kind: type) -> str:
    return kind.__name__.removeprefix("_")


def _number(bound: Any) -> str:
    return f"{bound:g}" if isinstance(bound, (int, float)) else f"{bound}"


class _Dependent(Constraint):
    """A constraint that depends on other parameters, and therefore cannot be checked on its own."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(
                f"{self!r}: `is_discrete` is not defined for this constraint, which depends on other "
                "parameters"
            )
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is NotImplemented:
            raise NotImplementedError(
                f"{self!r}: `event_dim` is not defined for this constraint, which depends on other parameters"
            )
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """Return a constraint of this class with the given `is_discrete` and `event_dim`."""
        if is_discrete is NotImplemented:
            is_discrete = self._is_discrete
        if event_dim is NotImplemented:
            event_dim = self._event_dim
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Tensor) -> Tensor:
        raise ValueError(
            f"{self!r}: the constraint depends on other parameters, so it cannot be checked alone"
        )


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on other parameters.

    For example, the support of a uniform distribution depends on the limits of the distribution.

    Args:
        constraint: the constraint.

    Example:
        >>> from rushlight.distributions import constraints
        >>> constraints.is_dependent(constraints.positive), constraints.is_dependent(constraints.dependent)
        (False, True)
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of a distribution whose value is a constraint that depends on the distribution's parameters.

    On the class, which has no parameters, the value is this object, which is a `_Dependent` constraint.
    """

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> _DependentProperty:  # type: ignore[override]
        """Return a property that calls `fn`, with the `is_discrete` and `event_dim` of this property."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """A constraint that treats the last `reinterpreted_batch_ndims` dimensions of another constraint as event dimensions.

    An event satisfies this constraint if `base_constraint` is satisfied at every index of these dimensions.
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        for name, given, kind in (
            ("base_constraint", base_constraint, Constraint),
            ("reinterpreted_batch_ndims", reinterpreted_batch_ndims, int),
        ):
            if not isinstance(given, kind):
                raise TypeError(f"independent({name}): got {type(given).__name__}, needs {kind.__name__}")
        if reinterpreted_batch_ndims < 0:
            raise ValueError(
                f"independent(reinterpreted_batch_ndims): got {reinterpreted_batch_ndims}, needs at least 0"
            )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if result.dim() < count:
            raise ValueError(
                f"{self!r}: got a value of {value.dim()} dimensions, needs at least {self.event_dim}"
            )
        return result.reshape((*result.shape[: result.dim() - count], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{_shown(type(self))}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"

    def _needs(self) -> str:
        return self.base_constraint._needs()


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture, which is the support of its components.

    `check` receives values of the mixture, which have no dimension for the components.

    Args:
        base_constraint: the support of the components.

    Shape:
        - `check(value)` for a value of shape (*, *event) returns a bool tensor of shape (*).

    Raises:
        TypeError: `base_constraint` is not a constraint.
        ValueError: a value has fewer dimensions than an event (raised when the value is checked).

    Example:
        >>> from rushlight.distributions import constraints
        >>> constraints.MixtureSameFamilyConstraint(constraints.positive)
        MixtureSameFamilyConstraint(GreaterThan(lower_bound=0.0))
    """

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise TypeError(
                f"MixtureSameFamilyConstraint(base_constraint): got {type(base_constraint).__name__}, needs Constraint"
            )
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        dims = self.event_dim
        if value.dim() < dims:
            raise ValueError(f"{self!r}: got a value of {value.dim()} dimensions, needs at least {dims}")
        # Add a dimension for the components, so that events broadcast with the bounds of the components.
        return self.base_constraint.check(value.unsqueeze(-1 - dims)).all(-1)

    def __repr__(self) -> str:
        return f"{_shown(type(self))}({self.base_constraint!r})"

    def _needs(self) -> str:
        return self.base_constraint._needs()


# --- numbers ---


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)

    def _needs(self) -> str:
        return "zeros and ones"


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # not NaN

    def _needs(self) -> str:
        return "numbers"


class _Bounded(Constraint):
    """The base class of constraints with a `lower_bound`, an `upper_bound`, or both."""

    def __repr__(self) -> str:
        parts = [
            f"{name}={self.__dict__[name]}"
            for name in ("lower_bound", "upper_bound")
            if name in self.__dict__
        ]
        return f"{_shown(type(self))}({', '.join(parts)})"


class _Above(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__()


class _Below(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__()


class _Between(_Bounded):
    lower_bound: Any
    upper_bound: Any

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        super().__init__()


class _IntegerInterval(_Between):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)

    def _needs(self) -> str:
        return f"whole numbers from {_number(self.lower_bound)} to {_number(self.upper_bound)}"


class _IntegerLessThan(_Below):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)

    def _needs(self) -> str:
        return f"whole numbers of at most {_number(self.upper_bound)}"


class _IntegerGreaterThan(_Above):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)

    def _needs(self) -> str:
        return f"whole numbers of at least {_number(self.lower_bound)}"


class _GreaterThan(_Above):
    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value

    def _needs(self) -> str:
        return f"numbers above {_number(self.lower_bound)}"


class _GreaterThanEq(_Above):
    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value

    def _needs(self) -> str:
        return f"numbers of at least {_number(self.lower_bound)}"


class _LessThan(_Below):
    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound

    def _needs(self) -> str:
        return f"numbers below {_number(self.upper_bound)}"


class _Interval(_Between):
    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)

    def _needs(self) -> str:
        return f"numbers from {_number(self.lower_bound)} to {_number(self.upper_bound)}"


class _HalfOpenInterval(_Between):
    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)

    def _needs(self) -> str:
        return f"numbers from {_number(self.lower_bound)} to below {_number(self.upper_bound)}"


# --- vectors ---


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)

    def _needs(self) -> str:
        return "vectors with a single one"


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)

    def _needs(self) -> str:
        return "vectors of numbers of at least 0 whose sum is 1"


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def _needs(self) -> str:
        return f"vectors of counts whose sum is at most {_number(self.upper_bound)}"


# --- matrices ---


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)

    def _needs(self) -> str:
        return "lower triangular matrices"


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        positive = (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)
        return lower_triangular.check(value) & positive

    def _needs(self) -> str:
        return "lower triangular matrices with a positive diagonal"


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = core.finfo(value.dtype).eps * value.shape[-1] * 10
        unit = ((value.detach().norm(dim=-1) - 1).abs() < tolerance).all(-1)
        return unit & lower_cholesky.check(value)

    def _needs(self) -> str:
        return "lower triangular matrices with a positive diagonal and rows of length 1"


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        fits = value.shape[-2] == value.shape[-1]
        return core.full(value.shape[:-2], fits, dtype=core.bool, device=value.device)

    def _needs(self) -> str:
        return "square matrices"


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not bool(square.all()):
            return square
        return core.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)

    def _needs(self) -> str:
        return "symmetric matrices"


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not bool(symmetric.all()):
            return symmetric
        return core.linalg.eigvalsh(value).ge(0).all(-1)

    def _needs(self) -> str:
        return "symmetric positive semidefinite matrices"


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not bool(symmetric.all()):
            return symmetric
        return core.linalg.cholesky_ex(value).info == 0

    def _needs(self) -> str:
        return "symmetric positive definite matrices"


# --- concatenated and stacked sets ---


class _Cat(Constraint):
    """A separate constraint for each part of a tensor that is split along `dim` into parts of the sizes `lengths`."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            kinds = ", ".join(type(c).__name__ for c in cseq)
            raise TypeError(f"cat(cseq): needs constraints, got {kinds}")
        self.cseq: list[Constraint] = list(cseq)
        self.lengths: list[int] = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(
                f"cat(lengths): got {len(self.lengths)} lengths, needs {len(self.cseq)}, one for each part"
            )
        self.dim = dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        if not -value.dim() <= self.dim < value.dim():
            raise ValueError(
                f"{self!r}: got a value of {value.dim()} dimensions, which has no dimension {self.dim}"
            )
        parts = value.split([*self.lengths, value.shape[self.dim] - sum(self.lengths)], self.dim)
        return core.cat([c.check(v) for c, v in zip(self.cseq, parts, strict=False)], self.dim)


class _Stack(Constraint):
    """A separate constraint for each slice of a tensor along `dim`."""

    cseq: list[Constraint]
    dim: int

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            kinds = ", ".join(type(c).__name__ for c in cseq)
            raise TypeError(f"stack(cseq): needs constraints, got {kinds}")
        self.cseq, self.dim = list(cseq), dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        if not -value.dim() <= self.dim < value.dim():
            raise ValueError(
                f"{self!r}: got a value of {value.dim()} dimensions, which has no dimension {self.dim}"
            )
        slices = value.unbind(self.dim)
        return core.stack([c.check(v) for c, v in zip(self.cseq, slices, strict=False)], self.dim)


dependent: _Dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean: _Boolean = _Boolean()
one_hot: _OneHot = _OneHot()
nonnegative_integer: _IntegerGreaterThan = _IntegerGreaterThan(0)
positive_integer: _IntegerGreaterThan = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real: _Real = _Real()
real_vector: independent = independent(real, 1)
positive: _GreaterThan = _GreaterThan(0.0)
nonnegative: _GreaterThanEq = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval: _Interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex: _Simplex = _Simplex()
lower_triangular: _LowerTriangular = _LowerTriangular()
lower_cholesky: _LowerCholesky = _LowerCholesky()
corr_cholesky: _CorrCholesky = _CorrCholesky()
square: _Square = _Square()
symmetric: _Symmetric = _Symmetric()
positive_semidefinite: _PositiveSemidefinite = _PositiveSemidefinite()
positive_definite: _PositiveDefinite = _PositiveDefinite()
cat = _Cat
stack = _Stack
