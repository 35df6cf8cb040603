"""Transforms from unconstrained real numbers to constrained sets, for optimizers and samplers.

`transform_to(constraint)` returns a transform for optimizers, which is well conditioned but may not be invertible.
`biject_to(constraint)` returns a bijection for samplers. The bijection can also compute the determinant of its Jacobian
matrix, on which the density of a transformed variable depends.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable

from . import constraints, transforms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Factory = Callable[[Any], transforms.Transform]

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A registry of transforms from unconstrained real numbers, with an entry for each class of constraints.

    `transform_to` and `biject_to` are such registries. Calling a registry with a constraint returns the transform to this
    constraint.

    Raises:
        NotImplementedError: no transform is registered for the class of a constraint.
        TypeError: the registered object is neither a constraint nor a class of constraints.

    Example:
        >>> from rushlight.distributions import biject_to, constraints, transform_to
        >>> biject_to(constraints.positive)
        ExpTransform()
        >>> transform_to(constraints.simplex)(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register `factory`, which returns a transform to a given constraint. Return a decorator if `factory` is None.

        Raises:
            TypeError: the object is neither a constraint nor a class of constraints.
        """
        if factory is None:
            return lambda given: self.register(constraint, given)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not (isinstance(constraint, type) and issubclass(constraint, constraints.Constraint)):
            raise TypeError(
                f"register(constraint): got {constraint!r}, needs a constraint or a class of constraints"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> transforms.Transform:
        """Return the transform from unconstrained real numbers to `constraint`.

        Raises:
            NotImplementedError: no transform is registered for the constraint.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"no transform to {constraint!r} is registered\nhint: register one with register(type(constraint), factory)"
            )
        return factory(constraint)


biject_to: ConstraintRegistry = ConstraintRegistry()
transform_to: ConstraintRegistry = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Factory], Factory]:
    def keep(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return keep


@_both(constraints.real)
def _real(constraint: Any) -> transforms.Transform:
    return transforms.identity_transform


@biject_to.register(constraints.independent)
def _bijection_to_independent(constraint: Any) -> transforms.Transform:
    return transforms.IndependentTransform(
        biject_to(constraint.base_constraint), constraint.reinterpreted_batch_ndims
    )


@transform_to.register(constraints.independent)
def _transform_to_independent(constraint: Any) -> transforms.Transform:
    return transforms.IndependentTransform(
        transform_to(constraint.base_constraint), constraint.reinterpreted_batch_ndims
    )


@_both(constraints.positive, constraints.nonnegative)
def _positive(constraint: Any) -> transforms.Transform:
    return _above(constraint.lower_bound, 1)


@_both(constraints.less_than)
def _below(constraint: Any) -> transforms.Transform:
    return _above(constraint.upper_bound, -1)


def _above(bound: Any, direction: int) -> transforms.Transform:
    if direction == 1 and isinstance(bound, numbers.Number) and bound == 0:
        return transforms.ExpTransform()
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(bound, direction)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _interval(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, numbers.Number) and low == 0 and isinstance(high, numbers.Number) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


@biject_to.register(constraints.simplex)
def _bijection_to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _positive_definite(constraint: Any) -> transforms.Transform:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _corr_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.cat)
def _bijection_to_cat(constraint: Any) -> transforms.Transform:
    return transforms.CatTransform(
        [biject_to(c) for c in constraint.cseq], constraint.dim, constraint.lengths
    )


@transform_to.register(constraints.cat)
def _transform_to_cat(constraint: Any) -> transforms.Transform:
    return transforms.CatTransform(
        [transform_to(c) for c in constraint.cseq], constraint.dim, constraint.lengths
    )


@biject_to.register(constraints.stack)
def _bijection_to_stack(constraint: Any) -> transforms.Transform:
    return transforms.StackTransform([biject_to(c) for c in constraint.cseq], constraint.dim)


@transform_to.register(constraints.stack)
def _transform_to_stack(constraint: Any) -> transforms.Transform:
    return transforms.StackTransform([transform_to(c) for c in constraint.cseq], constraint.dim)
