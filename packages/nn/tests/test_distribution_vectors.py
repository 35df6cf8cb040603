"""Distributions of vectors and matrices, and of mixtures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

import rushlight_core as core
import rushlight_nn.distributions as D


def t(array, **options):
    return core.tensor(np.array(array), dtype=core.float64, **options)


def covariance(rng, size, *batch):
    half = rng.normal(size=(*batch, size, size))
    return half @ np.swapaxes(half, -1, -2) + np.eye(size)


def test_dirichlet(rng):
    concentration = rng.uniform(0.3, 3, size=4)
    dist, scipy = D.Dirichlet(t(concentration)), stats.dirichlet(concentration)
    x = dist.sample((20000,))
    np.testing.assert_allclose(dist.log_prob(x)[:5].numpy(), [scipy.logpdf(row) for row in x[:5].numpy()])
    assert float(dist.entropy()) == pytest.approx(scipy.entropy())
    np.testing.assert_allclose(dist.mean.numpy(), scipy.mean())
    np.testing.assert_allclose(dist.variance.numpy(), scipy.var())
    np.testing.assert_allclose(x.mean(0).numpy(), scipy.mean(), atol=0.01)
    np.testing.assert_allclose(x.var(0).numpy(), scipy.var(), atol=0.005)
    assert D.Dirichlet(t([0.2, 0.9, 0.5])).mode.tolist() == [0.0, 1.0, 0.0]
    np.testing.assert_allclose(D.Dirichlet(t([2.0, 3.0])).mode.numpy(), [1 / 3, 2 / 3])


def test_low_rank_normal_vectors_are_normal_vectors(rng):
    loc, factor, diagonal = (
        rng.normal(size=5),
        rng.normal(size=(3, 1, 5, 2)),
        rng.uniform(0.2, 2, size=(2, 5)),
    )
    low = D.LowRankMultivariateNormal(t(loc), t(factor), t(diagonal))
    full = D.MultivariateNormal(t(loc), factor @ np.swapaxes(factor, -1, -2) + t(diagonal).diag_embed())
    assert (low.batch_shape, low.event_shape) == ((3, 2), (5,))
    x = t(rng.normal(size=(4, 3, 2, 5)))
    for name in ("mean", "variance", "covariance_matrix", "precision_matrix", "scale_tril"):
        np.testing.assert_allclose(
            getattr(low, name).numpy(), getattr(full, name).numpy(), rtol=1e-8, atol=1e-10
        )
    np.testing.assert_allclose(low.log_prob(x).numpy(), full.log_prob(x).numpy(), rtol=1e-9)
    np.testing.assert_allclose(low.entropy().numpy(), full.entropy().numpy(), rtol=1e-9)
    wide = low.expand((7, 3, 2))
    np.testing.assert_allclose(wide.log_prob(x[0])[3].numpy(), full.log_prob(x[0]).numpy(), rtol=1e-9)
    assert wide.variance.shape == (7, 3, 2, 5)
    drawn = low.sample((20000,)).numpy()[:, 1, 1]
    np.testing.assert_allclose(np.cov(drawn.T), full.covariance_matrix[1, 1].numpy(), atol=0.3)
    zero = D.kl_divergence(low, full)
    np.testing.assert_allclose(zero.numpy(), 0, atol=1e-9)


def test_wishart(rng):
    scale = covariance(rng, 3)
    dist = D.Wishart(t(5.5), t(scale))
    scipy = stats.wishart(5.5, scale)
    drawn = dist.sample((4000,))
    np.testing.assert_allclose(
        dist.log_prob(drawn[:6]).numpy(), scipy.logpdf(np.moveaxis(drawn[:6].numpy(), 0, -1))
    )
    assert float(dist.entropy()) == pytest.approx(scipy.entropy())
    np.testing.assert_allclose(dist.mean.numpy(), scipy.mean(), rtol=1e-9)
    np.testing.assert_allclose(dist.variance.numpy(), scipy.var(), rtol=1e-9)
    np.testing.assert_allclose(dist.mode.numpy(), scipy.mode(), rtol=1e-9)
    np.testing.assert_allclose(drawn.mean(0).numpy(), scipy.mean(), atol=0.1 * np.abs(scipy.mean()).max())
    # The squared elements of the Bartlett factor are chi-squared.
    first = drawn.numpy()[:, 0, 0] / scale[0, 0]
    assert stats.kstest(first, stats.chi2(5.5).cdf).pvalue > 1e-4
    for name, given in (
        ("precision_matrix", np.linalg.inv(scale)),
        ("scale_tril", np.linalg.cholesky(scale)),
    ):
        other = D.Wishart(5.5, **{name: t(given)})
        np.testing.assert_allclose(
            other.log_prob(drawn[0]).numpy(), dist.log_prob(drawn[0]).numpy(), rtol=1e-8
        )
    assert D.Wishart(t([4.0, 5.0]), core.eye(2, dtype=core.float64)).expand((3, 2)).sample().shape == (
        3,
        2,
        2,
        2,
    )
    with pytest.raises(ValueError, match="above 2"):
        D.Wishart(t(2.0), t(scale))


@pytest.mark.parametrize("concentration", [0.5, 1.0, 4.0])
def test_correlations(concentration):
    dist = D.LKJCholesky(4, t(concentration))
    drawn = dist.sample((6000,))
    dist.log_prob(drawn)  # the samples belong to the support
    correlations = (drawn @ drawn.mT).numpy()
    # Each correlation, of any pair, is a beta variable between -1 and 1.
    marginal = stats.beta(concentration + 1, concentration + 1)
    for i, j in ((1, 0), (3, 0), (3, 2)):
        assert stats.kstest((correlations[:, i, j] + 1) / 2, marginal.cdf).pvalue > 1e-4
    # For two variables, the density of the factor is the density of its element r, the correlation.
    pair = D.LKJCholesky(2, t(concentration))
    r = 0.3
    factor = t([[1.0, 0.0], [r, math.sqrt(1 - r * r)]])
    density = (1 - r * r) ** (concentration - 1) / (
        2 ** (2 * concentration - 1) * special.beta(concentration, concentration)
    )
    assert float(pair.log_prob(factor).exp()) == pytest.approx(density)


def test_mixtures(rng):
    weights, loc, scale = np.array([0.2, 0.5, 0.3]), rng.normal(size=3) * 3, rng.uniform(0.5, 2, size=3)
    dist = D.MixtureSameFamily(D.Categorical(t(weights)), D.Normal(t(loc), t(scale)))
    x = rng.normal(size=7)
    parts = stats.norm(loc, scale)
    np.testing.assert_allclose(dist.log_prob(t(x)).exp().numpy(), (weights * parts.pdf(x[:, None])).sum(-1))
    np.testing.assert_allclose(dist.cdf(t(x)).numpy(), (weights * parts.cdf(x[:, None])).sum(-1))
    mean = (weights * loc).sum()
    assert float(dist.mean) == pytest.approx(mean)
    assert float(dist.variance) == pytest.approx((weights * (scale**2 + loc**2)).sum() - mean**2)
    drawn = dist.sample((4000,)).numpy()
    assert stats.kstest(drawn, lambda v: (weights * parts.cdf(v[:, None])).sum(-1)).pvalue > 1e-4


def test_mixtures_of_vectors(rng):
    weights = t(rng.dirichlet(np.ones(4), size=2))
    component = D.Independent(D.Normal(t(rng.normal(size=(2, 4, 3))), t(1.0)), 1)
    dist = D.MixtureSameFamily(D.Categorical(weights), component)
    assert (dist.batch_shape, dist.event_shape) == ((2,), (3,))
    assert dist.sample((5,)).shape == (5, 2, 3)
    assert dist.expand((6, 2)).sample().shape == (6, 2, 3)
    x = t(rng.normal(size=(2, 3)))
    logs = component.log_prob(x.unsqueeze(-2)) + weights.log()
    np.testing.assert_allclose(dist.log_prob(x).numpy(), logs.logsumexp(-1).numpy())
    for bad in (
        lambda: D.MixtureSameFamily(D.Categorical(core.ones(3)), component),
        lambda: D.MixtureSameFamily(component, component),
    ):
        with pytest.raises(ValueError, match="MixtureSameFamily"):
            bad()


def test_logistic_normal(rng):
    loc, scale = t(rng.normal(size=(2, 3))), t(rng.uniform(0.5, 1, size=(2, 3)))
    dist = D.LogisticNormal(loc, scale)
    assert (dist.batch_shape, dist.event_shape) == ((2,), (4,))
    drawn = dist.sample((5,))
    np.testing.assert_allclose(drawn.sum(-1).numpy(), 1)
    assert dist.log_prob(drawn).shape == (5, 2)
    back = D.transforms.StickBreakingTransform().inv(dist.sample((4000,)))
    np.testing.assert_allclose(back.mean(0).numpy(), loc.numpy(), atol=0.08)
    assert core.equal(dist.expand((3, 2)).loc[1], loc)


@pytest.mark.parametrize("dtype", [core.float32, core.float64], ids=str)
def test_samples_of_small_concentrations_have_finite_densities(dtype):
    small = core.full((20000,), 0.01, dtype=dtype)
    for distribution in (D.Beta(small, small), D.Dirichlet(core.stack([small, small, small], -1))):
        drawn = distribution.sample()
        assert ((drawn > 0) & (drawn < 1)).all()
        assert distribution.log_prob(drawn).isfinite().all()
    assert abs(float((D.Beta(small, small).sample() < 0.1).float().mean()) - 0.5) < 0.02
