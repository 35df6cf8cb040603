"""Distributions, compared with SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

import rushlight_core as core
import rushlight_nn.distributions as D
from rushlight_nn import distributions

LOC, SCALE = np.array([[-1.0], [0.0], [2.0]]), np.array([0.5, 1.0, 1.5, 3.0])
LOW, PROBS = np.array([-2.0, 0.0, 1.0]), np.array([0.1, 0.5, 0.9])


def t(array, **options):
    return core.tensor(array, dtype=core.float64, **options)


# For each distribution: our class, SciPy's, and the values at which they are compared.
CONTINUOUS = {
    "Normal": (lambda: D.Normal(t(LOC), t(SCALE)), stats.norm(LOC, SCALE), [-3.0, 0.1, 2.5]),
    "Laplace": (lambda: D.Laplace(t(LOC), t(SCALE)), stats.laplace(LOC, SCALE), [-3.0, 0.1, 2.5]),
    "Cauchy": (lambda: D.Cauchy(t(LOC), t(SCALE)), stats.cauchy(LOC, SCALE), [-3.0, 0.1, 2.5]),
    "Gumbel": (lambda: D.Gumbel(t(LOC), t(SCALE)), stats.gumbel_r(LOC, SCALE), [-3.0, 0.1, 2.5]),
    "LogNormal": (
        lambda: D.LogNormal(t(LOC), t(SCALE)),
        stats.lognorm(SCALE, scale=np.exp(LOC)),
        [0.1, 1.0, 4.0],
    ),
    "Uniform": (lambda: D.Uniform(t(LOW), t(LOW + 2)), stats.uniform(LOW, 2.0), None),
    "Exponential": (lambda: D.Exponential(t(SCALE)), stats.expon(scale=1 / SCALE), [0.0, 0.5, 3.0]),
    "HalfNormal": (lambda: D.HalfNormal(t(SCALE)), stats.halfnorm(scale=SCALE), [0.0, 0.5, 3.0]),
}
DISCRETE = {
    "Bernoulli": (lambda: D.Bernoulli(t(PROBS)), stats.bernoulli(PROBS), [0.0, 1.0]),
    "Geometric": (lambda: D.Geometric(t(PROBS)), stats.geom(PROBS, loc=-1), [0.0, 1.0, 5.0]),
    "Poisson": (lambda: D.Poisson(t(SCALE)), stats.poisson(SCALE), [0.0, 1.0, 5.0]),
}


def shape_of(dist):
    return tuple(dist.batch_shape)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    make, scipy, values = CONTINUOUS[name]
    dist = make()
    points = LOW + 0.5 if values is None else np.array(values).reshape(-1, *(1 for _ in dist.batch_shape))
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(dist.log_prob(t(points)).numpy(), scipy.logpdf(points), **close)
    np.testing.assert_allclose(dist.cdf(t(points)).numpy(), scipy.cdf(points), **close)
    u = np.array([0.05, 0.5, 0.99]).reshape(-1, *(1 for _ in dist.batch_shape))
    np.testing.assert_allclose(dist.icdf(t(u)).numpy(), scipy.ppf(u), **close)
    np.testing.assert_allclose(
        dist.entropy().numpy(), np.broadcast_to(scipy.entropy(), shape_of(dist)), **close
    )
    if name != "Cauchy":
        np.testing.assert_allclose(dist.mean.numpy(), np.broadcast_to(scipy.mean(), shape_of(dist)), **close)
        np.testing.assert_allclose(
            dist.variance.numpy(), np.broadcast_to(scipy.var(), shape_of(dist)), **close
        )
        np.testing.assert_allclose(dist.stddev.numpy(), np.broadcast_to(scipy.std(), shape_of(dist)), **close)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    make, scipy, values = DISCRETE[name]
    dist = make()
    points = np.array(values).reshape(-1, 1)
    np.testing.assert_allclose(dist.log_prob(t(points)).numpy(), scipy.logpmf(points), rtol=1e-9)
    np.testing.assert_allclose(dist.mean.numpy(), scipy.mean(), rtol=1e-12)
    np.testing.assert_allclose(dist.variance.numpy(), scipy.var(), rtol=1e-12)
    if name != "Poisson":
        np.testing.assert_allclose(dist.entropy().numpy(), scipy.entropy(), rtol=1e-6)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_samples(name):
    dist = {**CONTINUOUS, **DISCRETE}[name][0]()
    assert dist.sample().shape == dist.batch_shape
    assert dist.sample((2, 3)).shape == (2, 3, *dist.batch_shape)
    drawn = dist.sample((4000,))
    assert drawn.dtype == core.float64
    if name in CONTINUOUS:  # the distribution function maps samples to uniform numbers
        u = dist.cdf(drawn).numpy().reshape(4000, -1)
        assert all(stats.kstest(column, "uniform").pvalue > 1e-4 for column in u.T)
        assert dist.has_rsample
    else:
        error = np.abs(drawn.numpy().mean(0) - dist.mean.numpy())
        assert (error < 5 * dist.stddev.numpy() / math.sqrt(4000)).all()
        with pytest.raises(NotImplementedError, match="rsample"):
            dist.rsample()
    wider = dist.expand((2, *dist.batch_shape))
    assert wider.batch_shape == (2, *dist.batch_shape)
    value = drawn[0]
    np.testing.assert_array_equal(wider.log_prob(value)[1].numpy(), dist.log_prob(value).numpy())


def test_categorical():
    weights = core.tensor([[1.0, 2.0, 1.0], [0.0, 3.0, 1.0]])
    for dist in (D.Categorical(weights), D.Categorical(logits=weights.log())):
        np.testing.assert_allclose(dist.probs.numpy(), [[0.25, 0.5, 0.25], [0.0, 0.75, 0.25]], rtol=1e-6)
        np.testing.assert_allclose(
            dist.entropy().numpy(), stats.entropy(dist.probs.numpy(), axis=1), rtol=1e-5
        )
        assert dist.mode.tolist() == [1, 1]
        drawn = dist.sample((3000,))
        assert (drawn.dtype, drawn.shape) == (core.int64, (3000, 2))
        counts = [np.bincount(drawn[:, i].numpy(), minlength=3) / 3000 for i in range(2)]
        np.testing.assert_allclose(counts, dist.probs.numpy(), atol=0.05)
        np.testing.assert_allclose(
            dist.log_prob(core.tensor([[1, 1], [2, 2]])).numpy(),
            np.log([[0.5, 0.75], [0.25, 0.25]]),
            rtol=1e-5,
        )
        assert dist.enumerate_support().shape == (3, 2)
    one_hot = D.OneHotCategorical(weights)
    assert (one_hot.batch_shape, one_hot.event_shape) == ((2,), (3,))
    drawn = one_hot.sample((5,))
    assert drawn.shape == (5, 2, 3)
    assert (drawn.sum(-1) == 1).all()
    np.testing.assert_array_equal(
        one_hot.log_prob(drawn).numpy(), D.Categorical(weights).log_prob(drawn.argmax(-1)).numpy()
    )


@pytest.mark.parametrize("how", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_multivariate_normal(rng, how):
    half = rng.normal(size=(3, 3))
    covariance = half @ half.T + np.eye(3)
    given = {
        "covariance_matrix": covariance,
        "precision_matrix": np.linalg.inv(covariance),
        "scale_tril": np.linalg.cholesky(covariance),
    }[how]
    loc = rng.normal(size=3)
    dist, scipy = D.MultivariateNormal(t(loc), **{how: t(given)}), stats.multivariate_normal(loc, covariance)
    x = rng.normal(size=(5, 3))
    np.testing.assert_allclose(dist.log_prob(t(x)).numpy(), scipy.logpdf(x), rtol=1e-9)
    assert float(dist.entropy()) == pytest.approx(scipy.entropy(), rel=1e-9)
    np.testing.assert_allclose(dist.covariance_matrix.numpy(), covariance, rtol=1e-8)
    np.testing.assert_allclose(dist.precision_matrix.numpy(), np.linalg.inv(covariance), rtol=1e-8)
    np.testing.assert_allclose(dist.variance.numpy(), np.diag(covariance), rtol=1e-8)
    drawn = dist.rsample((20000,)).numpy()
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.15 * np.abs(covariance).max())


def test_independent():
    base = D.Normal(core.zeros(4, 3), core.ones(3))
    dist = D.Independent(base, 1)
    assert (dist.batch_shape, dist.event_shape) == ((4,), (3,))
    x = core.randn(4, 3)
    np.testing.assert_array_equal(dist.log_prob(x).numpy(), base.log_prob(x).sum(-1).numpy())
    assert dist.expand((2, 4)).sample().shape == (2, 4, 3)
    with pytest.raises(ValueError, match="needs at most 2"):
        D.Independent(base, 3)


CONTINUOUS_PAIRS = [
    (D.Normal(t(0.3), t(1.2)), D.Normal(t(-1.0), t(2.0)), (-15, 15)),
    (D.Laplace(t(0.3), t(1.2)), D.Laplace(t(-1.0), t(2.0)), (-40, 40)),
    (D.Gumbel(t(0.3), t(1.2)), D.Gumbel(t(-1.0), t(2.0)), (-12, 60)),
    (D.LogNormal(t(0.3), t(0.5)), D.LogNormal(t(-0.2), t(0.8)), (1e-9, 60)),
    (D.Exponential(t(0.8)), D.Exponential(t(2.0)), (0, 60)),
    (D.HalfNormal(t(0.8)), D.HalfNormal(t(2.0)), (0, 20)),
    (D.Uniform(t(0.0), t(1.0)), D.Uniform(t(-1.0), t(2.0)), (1e-9, 1 - 1e-9)),
]


@pytest.mark.parametrize(("p", "q", "limits"), CONTINUOUS_PAIRS, ids=lambda value: type(value).__name__)
def test_divergences_are_integrals(p, q, limits):
    def integrand(x):
        x = t(x)
        return float(p.log_prob(x).exp() * (p.log_prob(x) - q.log_prob(x)))

    middle = min(max(0.3, limits[0]), limits[1])
    expected = sum(integrate.quad(integrand, *part)[0] for part in ((limits[0], middle), (middle, limits[1])))
    assert float(D.kl_divergence(p, q)) == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(
    ("p", "q", "count"),
    [
        (D.Bernoulli(t(0.3)), D.Bernoulli(t(0.8)), 2),
        (D.Geometric(t(0.3)), D.Geometric(t(0.6)), 200),
        (D.Poisson(t(2.0)), D.Poisson(t(3.5)), 60),
        (D.Categorical(t([0.2, 0.5, 0.3])), D.Categorical(t([0.6, 0.2, 0.2])), 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_divergences_are_sums(p, q, count):
    values = core.arange(count, dtype=core.float64)
    expected = (p.log_prob(values).exp() * (p.log_prob(values) - q.log_prob(values))).sum()
    assert float(D.kl_divergence(p, q)) == pytest.approx(float(expected), rel=1e-8)


def test_divergences_of_joint_distributions(rng):
    half = rng.normal(size=(2, 3, 3))
    covariances = [t(h @ h.T + np.eye(3)) for h in half]
    p, q = (D.MultivariateNormal(t(rng.normal(size=3)), c) for c in covariances)
    apart, inverse = (q.loc - p.loc).numpy(), np.linalg.inv(covariances[1].numpy())
    ratio = np.linalg.slogdet(covariances[1].numpy())[1] - np.linalg.slogdet(covariances[0].numpy())[1]
    expected = 0.5 * (np.trace(inverse @ covariances[0].numpy()) + apart @ inverse @ apart - 3 + ratio)
    assert float(D.kl_divergence(p, q)) == pytest.approx(expected, rel=1e-9)
    a, b = D.Normal(t([0.0, 1.0]), t([1.0, 2.0])), D.Normal(t([1.0, 1.0]), t([1.0, 1.0]))
    joint = D.kl_divergence(D.Independent(a, 1), D.Independent(b, 1))
    assert float(joint) == pytest.approx(float(D.kl_divergence(a, b).sum()))
    assert math.isinf(float(D.kl_divergence(D.Uniform(t(0.0), t(3.0)), D.Uniform(t(0.0), t(1.0)))))
    with pytest.raises(NotImplementedError, match=r"Normal and Poisson.*\nhint"):
        D.kl_divergence(a, D.Poisson(t(1.0)))


def test_divergences_of_a_user():
    class Mine(D.Normal):
        pass

    a = Mine(0.0, 1.0)
    assert float(D.kl_divergence(a, D.Normal(0.0, 1.0))) == 0.0  # as for the base class

    @D.register_kl(Mine, D.Normal)
    def _(p, q):
        return core.tensor(7.0)

    assert float(D.kl_divergence(a, D.Normal(0.0, 1.0))) == 7.0
    with pytest.raises(TypeError, match="classes"):
        D.register_kl(3, Mine)


@pytest.mark.parametrize(
    "make",
    [
        lambda: D.Normal(0.0, -1.0),
        lambda: D.Normal("a", 1.0),
        lambda: D.Uniform(1.0, 0.0),
        lambda: D.Exponential(0.0),
        lambda: D.Bernoulli(1.5),
        lambda: D.Bernoulli(),
        lambda: D.Bernoulli(0.5, logits=0.5),
        lambda: D.Geometric(0.0),
        lambda: D.Poisson(-1.0),
        lambda: D.Categorical(core.tensor([-1.0, 2.0])),
        lambda: D.Categorical(core.tensor(1.0)),
        lambda: D.MultivariateNormal(core.zeros(2)),
        lambda: D.MultivariateNormal(core.zeros(2), -core.eye(2)),
        lambda: D.Normal(0.0, 1.0).log_prob(core.tensor(math.nan)),
        lambda: D.Exponential(1.0).log_prob(core.tensor(-1.0)),
        lambda: D.Bernoulli(0.5).log_prob(core.tensor(0.3)),
        lambda: D.Categorical(core.ones(3)).log_prob(core.tensor(3)),
        lambda: D.OneHotCategorical(core.ones(3)).log_prob(core.ones(3)),
    ],
)
def test_what_does_not_fit(make):
    with pytest.raises(ValueError, match=r"needs|positive definite|must be"):
        make()


def test_checks_can_be_left_out():
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0
    try:
        D.Distribution.set_default_validate_args(False)
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="bool"):
        D.Distribution.set_default_validate_args(1)


def test_how_they_are_shown():
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Normal(core.zeros(2), 1.0)) == "Normal(loc: torch.Size([2]), scale: torch.Size([2]))"
    assert repr(D.Categorical(logits=core.zeros(3))) == "Categorical(logits: torch.Size([3]))"
    assert set(distributions.__all__) >= {"Normal", "kl_divergence"}
