"""Transforms: inverses, determinants compared with differences, shapes, caches, and transformed distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import rushlight_core as core
import rushlight_nn.distributions as D
from rushlight_nn.distributions import constraints


def t(array):
    return core.tensor(np.array(array), dtype=core.float64)


NUMBERS = {
    "exp": D.ExpTransform(),
    "power": D.PowerTransform(t(2.5)),
    "negative power": D.PowerTransform(-1.5),
    "sigmoid": D.SigmoidTransform(),
    "softplus": D.SoftplusTransform(),
    "tanh": D.TanhTransform(),
    "affine": D.AffineTransform(1.0, -2.0),
    "affine of tensors": D.AffineTransform(t([1.0, 2.0, 3.0]), t([0.5, -1.0, 4.0])),
    "distribution function": D.CumulativeDistributionTransform(D.Normal(t(0.5), t(2.0))),
    "composition": D.ComposeTransform([D.AffineTransform(0.5, 2.0), D.ExpTransform(), D.PowerTransform(3)]),
    "inverse": D.ComposeTransform([D.SigmoidTransform(), D.ExpTransform()]).inv.inv,
}
VECTORS = {
    "stick-breaking": (D.StickBreakingTransform(), 4),
    "correlations": (D.CorrCholeskyTransform(), 6),
    "one correlation": (D.CorrCholeskyTransform(), 1),
    "affine, then stick-breaking": (
        D.ComposeTransform([D.AffineTransform(0.1, 2.0), D.StickBreakingTransform()]),
        3,
    ),
    "independent": (D.IndependentTransform(D.ExpTransform(), 1), 3),
    "side by side": (
        D.CatTransform(
            [D.IndependentTransform(D.ExpTransform(), 1), D.IndependentTransform(D.AffineTransform(0, 2), 1)],
            dim=-1,
            lengths=[1, 3],
        ),
        4,
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_transforms_of_numbers(name):
    transform = NUMBERS[name]
    x, step = t([0.3, 0.8, 1.7]), 1e-6
    y = transform(x)
    assert transform.bijective
    assert transform.inv.inv is transform
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-9)
    slope = (transform(x + step) - transform(x - step)) / (2 * step)
    np.testing.assert_allclose(
        transform.log_abs_det_jacobian(x, y).exp().numpy(), slope.abs().numpy(), rtol=1e-6
    )
    np.testing.assert_allclose(
        transform.inv.log_abs_det_jacobian(y, x).numpy(), -transform.log_abs_det_jacobian(x, y).numpy()
    )
    np.testing.assert_array_equal(
        np.broadcast_to(np.sign(slope.numpy()), 3), np.broadcast_to(transform.sign, 3)
    )
    assert bool(transform.codomain.check(y).all())
    assert transform.forward_shape((3,)) == (3,)


@pytest.mark.parametrize("name", VECTORS)
def test_transforms_of_vectors(name, rng):
    transform, size = VECTORS[name]
    x, step = t(rng.normal(size=(2, size)) * 0.7), 1e-6
    y = transform(x)
    assert y.shape == transform.forward_shape(x.shape)
    assert x.shape == transform.inverse_shape(y.shape)
    assert bool(transform.codomain.check(y).all())
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-8)

    def independent(value):
        """Return as many independent numbers of the result as there are arguments."""
        value = transform(value)
        if transform.codomain is constraints.corr_cholesky:
            return D.utils.tril_matrix_to_vec(value, -1)
        return value[..., :size]

    columns = []
    for k in range(size):
        moved = core.zeros(size, dtype=core.float64)
        moved[k] = step
        columns.append((independent(x + moved) - independent(x - moved)) / (2 * step))
    jacobian = core.linalg.slogdet(core.stack(columns, -1)).logabsdet
    found = transform.log_abs_det_jacobian(x, y)
    np.testing.assert_allclose(found.numpy(), jacobian.numpy(), rtol=1e-6)


def test_transforms_of_matrices(rng):
    x = t(rng.normal(size=(2, 3, 3)))
    factor = D.LowerCholeskyTransform()(x)
    assert bool(constraints.lower_cholesky.check(factor).all())
    np.testing.assert_allclose(D.LowerCholeskyTransform().inv(factor).numpy(), x.tril().numpy())
    definite = D.PositiveDefiniteTransform()(x)
    assert bool(constraints.positive_definite.check(definite).all())
    np.testing.assert_allclose(
        D.PositiveDefiniteTransform().inv(definite).numpy(), x.tril().numpy(), rtol=1e-8
    )
    assert not D.LowerCholeskyTransform().bijective


def test_those_without_an_inverse():
    assert D.AbsTransform()(t(-2.0)) == 2
    assert not D.AbsTransform().bijective
    x = t([[1.0, 2.0, 0.5]])
    np.testing.assert_allclose(D.SoftmaxTransform().inv(x.softmax(-1)).exp().numpy(), x.softmax(-1).numpy())
    with pytest.raises(NotImplementedError, match="not monotonic"):
        _ = D.SoftmaxTransform().sign
    with pytest.raises(NotImplementedError, match="log_abs_det_jacobian"):
        D.AbsTransform().log_abs_det_jacobian(x, x)


def test_shapes():
    reshape = D.ReshapeTransform((4,), (2, 2))
    assert reshape(core.zeros(3, 4)).shape == (3, 2, 2)
    assert reshape.log_abs_det_jacobian(core.zeros(3, 4), core.zeros(3, 2, 2)).shape == (3,)
    with pytest.raises(ValueError, match="numbers of elements"):
        D.ReshapeTransform((4,), (3,))
    with pytest.raises(ValueError, match="ends with"):
        reshape.forward_shape((3, 5))
    with pytest.raises(ValueError, match=r"n \(n - 1\) / 2"):
        D.CorrCholeskyTransform().forward_shape((4,))
    stack = D.StackTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)], dim=0)
    np.testing.assert_allclose(stack(t([[0.0], [3.0]])).numpy(), [[1.0], [6.0]])
    assert stack.log_abs_det_jacobian(t([[0.0], [3.0]]), t([[1.0], [6.0]])).shape == (2, 1)
    with pytest.raises(ValueError, match="needs 2"):
        stack(core.zeros(3))


def test_caches_give_back_what_they_got():
    transform = D.TanhTransform(cache_size=1)
    x = core.tensor([20.0])  # its hyperbolic tangent is rounded to 1
    y = transform(x)
    assert transform.inv(y) is x
    assert transform(x) is y
    assert math.isinf(D.TanhTransform().inv(D.TanhTransform()(x)).item())
    assert D.ExpTransform().with_cache()._cache_size == 1
    with pytest.raises(ValueError, match="needs 0 or 1"):
        D.ExpTransform(cache_size=2)


def test_equality():
    assert D.ExpTransform() == D.ExpTransform()
    assert D.ExpTransform() != D.AbsTransform()
    assert D.AffineTransform(1.0, 2.0) == D.AffineTransform(t(1.0), 2.0)
    assert D.AffineTransform(1.0, 2.0) != D.AffineTransform(1.0, 3.0)
    assert D.ExpTransform().inv == D.ExpTransform().inv
    assert D.ComposeTransform([D.ExpTransform()]) == D.ComposeTransform([D.ExpTransform()])


def test_transformed_distributions():
    dist = D.TransformedDistribution(
        D.Normal(t([0.0, 1.0]), t(1.0)), [D.ExpTransform(), D.AffineTransform(1.0, -2.0)]
    )
    scipy = stats.lognorm(1.0, scale=np.exp([0.0, 1.0]))
    x = t([[-3.0, 0.5], [-0.1, -9.0]])
    inside = (1 - x.numpy()) / 2
    np.testing.assert_allclose(dist.log_prob(x).exp().numpy(), scipy.pdf(inside) / 2)
    np.testing.assert_allclose(dist.cdf(x).numpy(), scipy.sf(inside))
    np.testing.assert_allclose(dist.cdf(dist.icdf(t([0.2, 0.7]))).numpy(), [0.2, 0.7])
    assert dist.sample((3,)).shape == (3, 2)
    assert dist.expand((4, 2)).log_prob(x[0]).shape == (4, 2)
    with pytest.raises(ValueError, match="satisfy"):
        dist.log_prob(t(math.nan))
    events = D.TransformedDistribution(D.Normal(core.zeros(2, 3), 1.0), D.StickBreakingTransform())
    assert (events.batch_shape, events.event_shape) == ((2,), (4,))
    wider = D.TransformedDistribution(D.Normal(0.0, 1.0), D.AffineTransform(core.zeros(3), core.ones(3)))
    assert wider.sample().shape == (3,)
    with pytest.raises(ValueError, match="at least 1 dimensions, as the transforms require"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform())


def test_triangles_as_vectors(rng):
    for diag in (-2, -1, 0, 1, 2):
        matrix = t(rng.normal(size=(2, 4, 4))).tril(diag)
        vector = D.utils.tril_matrix_to_vec(matrix, diag)
        np.testing.assert_array_equal(D.utils.vec_to_tril_matrix(vector, diag).numpy(), matrix.numpy())
    with pytest.raises(ValueError, match="do not fill a triangle"):
        D.utils.vec_to_tril_matrix(core.zeros(4))
    with pytest.raises(ValueError, match="diag"):
        D.utils.tril_matrix_to_vec(core.zeros(3, 3), 3)
