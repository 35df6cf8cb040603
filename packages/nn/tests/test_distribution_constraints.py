"""Constraints: the values that satisfy them, and the transforms to them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight_core as core
import rushlight_nn.distributions as D
from rushlight_nn.distributions import constraints as c


def t(array):
    return core.tensor(np.array(array), dtype=core.float64)


ROOT = math.sqrt(0.75)
# For each constraint: events that satisfy it, and events that do not.
SETS = {
    "boolean": (c.boolean, [0.0, 1.0], [0.5, -1.0, math.nan]),
    "real": (c.real, [0.0, math.inf], [math.nan]),
    "positive": (c.positive, [1e-300, math.inf], [0.0, -1.0, math.nan]),
    "nonnegative": (c.nonnegative, [0.0, 2.0], [-1e-300, math.nan]),
    "greater_than": (c.greater_than(2), [2.5], [2.0, 1.0]),
    "greater_than_eq": (c.greater_than_eq(2), [2.0], [1.9]),
    "less_than": (c.less_than(2), [1.0], [2.0, math.nan]),
    "interval": (c.interval(-1, 2), [-1.0, 2.0], [-1.1, 2.1, math.nan]),
    "half_open_interval": (c.half_open_interval(0, 1), [0.0, 0.9], [1.0]),
    "unit_interval": (c.unit_interval, [0.0, 1.0], [-0.1, 1.1]),
    "nonnegative_integer": (c.nonnegative_integer, [0.0, 3.0], [-1.0, 0.5, math.nan]),
    "positive_integer": (c.positive_integer, [1.0], [0.0, 1.5]),
    "integer_interval": (c.integer_interval(1, 3), [1.0, 3.0], [0.0, 4.0, 1.5]),
    "real_vector": (c.real_vector, [[1.0, 2.0]], [[math.nan, 0.0]]),
    "simplex": (c.simplex, [[0.2, 0.8], [0.0, 1.0]], [[0.2, 0.7], [-0.1, 1.1]]),
    "one_hot": (c.one_hot, [[0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0], [0.5, 0.5]]),
    "multinomial": (c.multinomial(3), [[1.0, 2.0], [1.0, 0.0]], [[-1.0, 2.0], [3.0, 1.0]]),
    "lower_triangular": (c.lower_triangular, [[[-1.0, 0.0], [2.0, 3.0]]], [[[1.0, 2.0], [0.0, 1.0]]]),
    "lower_cholesky": (c.lower_cholesky, [[[1.0, 0.0], [2.0, 3.0]]], [[[-1.0, 0.0], [2.0, 3.0]]]),
    "corr_cholesky": (c.corr_cholesky, [[[1.0, 0.0], [0.5, ROOT]]], [[[1.0, 0.0], [0.5, 0.5]]]),
    "symmetric": (c.symmetric, [[[1.0, 2.0], [2.0, -3.0]]], [[[1.0, 2.0], [3.0, 1.0]]]),
    "positive_semidefinite": (
        c.positive_semidefinite,
        [[[1.0, 1.0], [1.0, 1.0]]],
        [[[1.0, 2.0], [2.0, 1.0]]],
    ),
    "positive_definite": (c.positive_definite, [[[2.0, 1.0], [1.0, 1.0]]], [[[1.0, 2.0], [2.0, 1.0]]]),
    "independent": (c.independent(c.positive, 1), [[1.0, 2.0]], [[1.0, -1.0]]),
}


@pytest.mark.parametrize("name", SETS)
def test_what_belongs(name):
    constraint, inside, outside = SETS[name]
    for events, wanted in ((inside, True), (outside, False)):
        found = constraint.check(t(events))
        assert found.shape == (len(events),)
        assert found.tolist() == [wanted] * len(events)
    assert constraint.event_dim == np.ndim(inside) - 1


@pytest.mark.parametrize("name", SETS)
def test_transforms_lead_there(name):
    constraint = SETS[name][0]
    dims = constraint.event_dim
    size = {"corr_cholesky": (6,)}.get(name, (3,) * dims)
    known = 0
    for registry in (D.biject_to, D.transform_to):
        try:
            transform = registry(constraint)
        except NotImplementedError:
            continue
        known += 1
        x = core.randn(5, *size, dtype=core.float64)
        y = transform(x)
        assert bool(constraint.check(y).all())
        if registry is D.biject_to:
            assert transform.bijective
            np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-6, atol=1e-9)
            assert transform.log_abs_det_jacobian(x, y).shape == (5,)
    without = {"boolean", "one_hot", "multinomial", "lower_triangular", "symmetric"}
    assert known or constraint.is_discrete or name in without


def test_several_side_by_side():
    cat = c.cat([c.positive, c.real], dim=-1, lengths=[1, 2])
    assert cat.check(t([[1.0, -1.0, 2.0], [-1.0, 0.0, 0.0]])).all(-1).tolist() == [True, False]
    stack = c.stack([c.positive, c.real], dim=0)
    assert stack.check(t([[1.0], [-1.0]])).all().item()
    for constraint in (cat, stack):
        y = D.biject_to(constraint)(core.randn(2, 3) if constraint is cat else core.randn(2, 1))
        assert bool(constraint.check(y).all())
    with pytest.raises(ValueError, match="lengths"):
        c.cat([c.real], lengths=[1, 2])
    with pytest.raises(TypeError, match="needs constraints"):
        c.stack([1])


def test_those_that_depend_on_parameters():
    assert c.is_dependent(D.Uniform.support)
    assert not c.is_dependent(D.Normal.support)
    support = D.Uniform(0.0, core.tensor([1.0, 2.0])).support
    assert support.check(core.tensor([1.5, 1.5])).tolist() == [False, True]
    assert D.Uniform.support.event_dim == 0
    with pytest.raises(ValueError, match="depends"):
        c.dependent.check(core.ones(1))
    with pytest.raises(NotImplementedError, match="event_dim"):
        _ = c.dependent.event_dim
    assert c.dependent(event_dim=1).event_dim == 1
    assert D.Independent(D.Normal(core.zeros(3), 1.0), 1).support.event_dim == 1


def test_ones_own():
    class Even(c.Constraint):
        is_discrete = True

        def check(self, value):
            return value % 2 == 0

    with pytest.raises(NotImplementedError, match="Even"):
        D.transform_to(Even())

    @D.transform_to.register(Even)
    def _(constraint):
        return D.AffineTransform(0, 2)

    assert D.transform_to(Even())(t(3.0)) == 6
    with pytest.raises(TypeError, match="constraint"):
        D.biject_to.register(int, lambda constraint: D.ExpTransform())

    class Pairs(D.Distribution):
        arg_constraints = {"half": Even()}
        support = Even()

        def __init__(self, half, validate_args=None):
            self.half = half
            super().__init__(half.shape, validate_args=validate_args)

        def log_prob(self, value):
            self._validate_sample(value)
            return core.zeros_like(value)

    with pytest.raises(
        ValueError, match=r"Pairs\(half\): must be in the set Even\(\), got tensor.*\n1 of 2 elements"
    ):
        Pairs(t([1.0, 2.0]))
    assert Pairs(t([2.0])).expand((4, 1)).half.shape == (4, 1)
    with pytest.raises(ValueError, match=r"Pairs\(value\)"):
        Pairs(t([2.0])).log_prob(t([3.0]))


def test_how_they_are_shown():
    assert repr(c.positive) == "GreaterThan(lower_bound=0.0)"
    assert repr(c.unit_interval) == "Interval(lower_bound=0.0, upper_bound=1.0)"
    assert repr(c.simplex) == "Simplex()"
    assert repr(c.real_vector) == "IndependentConstraint(Real(), 1)"
