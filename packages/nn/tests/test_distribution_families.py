"""Distributions of gamma, binomial and transformed variables, compared with SciPy or with integrals of their densities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

import rushlight_core as core
import rushlight_nn.distributions as D

A, B = np.array([[0.4], [1.0], [6.5]]), np.array([0.7, 1.0, 3.0])
CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def t(array, **options):
    return core.tensor(np.array(array), dtype=core.float64, **options)


# For each distribution: our class, SciPy's, and the values at which they are compared.
CONTINUOUS = {
    "Gamma": (lambda: D.Gamma(t(A), t(B)), stats.gamma(A, scale=1 / B), [0.01, 1.0, 7.0]),
    "Chi2": (lambda: D.Chi2(t(B)), stats.chi2(B), [0.01, 1.0, 7.0]),
    "Beta": (lambda: D.Beta(t(A), t(B)), stats.beta(A, B), [0.01, 0.5, 0.9]),
    "FisherSnedecor": (lambda: D.FisherSnedecor(t(A + 2), t(B + 5)), stats.f(A + 2, B + 5), [0.1, 1.0, 4.0]),
    "StudentT": (lambda: D.StudentT(t(A + 2.5), t(B), t(2.0)), stats.t(A + 2.5, B, 2.0), [-3.0, 0.0, 8.0]),
    "InverseGamma": (
        lambda: D.InverseGamma(t(A + 3), t(B)),
        stats.invgamma(A + 3, scale=B),
        [0.05, 0.5, 3.0],
    ),
    "Weibull": (lambda: D.Weibull(t(A), t(B)), stats.weibull_min(B, scale=A), [0.01, 1.0, 3.0]),
    "Pareto": (lambda: D.Pareto(t(A), t(B + 2.5)), stats.pareto(B + 2.5, scale=A), [7.0, 9.0, 20.0]),
    "HalfCauchy": (lambda: D.HalfCauchy(t(B)), stats.halfcauchy(scale=B), [0.1, 1.0, 30.0]),
    "GeneralizedPareto": (
        lambda: D.GeneralizedPareto(t(A), t(B), t([0.3, 0.0, -0.2])),
        stats.genpareto([0.3, 0.0, -0.2], loc=A, scale=B),
        [7.0, 7.5, 8.0],
    ),
    "VonMises": (
        lambda: D.VonMises(t([0.0, 1.0, -2.0]), t([1e-3, 1.5, 40.0])),
        stats.vonmises([1e-3, 1.5, 40.0], loc=[0.0, 1.0, -2.0]),
        [-3.0, 0.5, 2.0],
    ),
}
DISCRETE = {
    "Binomial": (lambda: D.Binomial(t([3.0, 9.0, 60.0]), t([0.1, 0.5, 0.9])), stats.binom, [0.0, 1.0, 3.0]),
    "NegativeBinomial": (
        lambda: D.NegativeBinomial(t([0.5, 3.0, 8.0]), t([0.1, 0.5, 0.9])),
        stats.nbinom,
        [0.0, 2.0, 30.0],
    ),
}
PARAMETERS = {
    "Binomial": ([3, 9, 60], [0.1, 0.5, 0.9]),
    "NegativeBinomial": ([0.5, 3.0, 8.0], [0.9, 0.5, 0.1]),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    make, scipy, values = CONTINUOUS[name]
    dist = make()
    shape = tuple(dist.batch_shape)
    points = np.array(values).reshape(-1, *(1 for _ in shape))
    np.testing.assert_allclose(dist.log_prob(t(points)).numpy(), scipy.logpdf(points), **CLOSE)
    for ours, theirs in ((dist.cdf, scipy.cdf), (dist.icdf, scipy.ppf)):
        at = points if ours == dist.cdf else np.array([0.02, 0.5, 0.97]).reshape(-1, *(1 for _ in shape))
        try:
            found = ours(t(at))
        except NotImplementedError:  # PyTorch's does not have it either
            continue
        np.testing.assert_allclose(found.numpy(), theirs(at), **CLOSE)
    try:
        entropy = dist.entropy().numpy()
    except NotImplementedError:
        assert name in ("FisherSnedecor", "VonMises")
    else:
        np.testing.assert_allclose(entropy, np.broadcast_to(scipy.entropy(), shape), rtol=1e-8, atol=1e-10)
    if name != "VonMises":  # its moments are circular
        np.testing.assert_allclose(dist.mean.numpy(), np.broadcast_to(scipy.mean(), shape), **CLOSE)
        np.testing.assert_allclose(dist.variance.numpy(), np.broadcast_to(scipy.var(), shape), **CLOSE)


def test_moments_of_angles():
    dist = CONTINUOUS["VonMises"][0]()
    angles = core.linspace(-math.pi, math.pi, 20001, dtype=core.float64)[:-1].unsqueeze(1)
    density = dist.log_prob(angles).exp() * (2 * math.pi / 20000)
    np.testing.assert_allclose(density.sum(0).numpy(), 1, rtol=1e-9)
    np.testing.assert_allclose(dist.mean.numpy(), dist.loc.numpy())
    resultant = (density * (angles - dist.loc).cos()).sum(0)
    np.testing.assert_allclose(dist.variance.numpy(), 1 - resultant.numpy(), rtol=1e-7)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples_of_continuous(name):
    make, scipy, _ = CONTINUOUS[name]
    dist = make()
    drawn = dist.sample((4000,))
    assert drawn.shape == (4000, *dist.batch_shape)
    dist.log_prob(drawn)  # the samples belong to the support
    u = scipy.cdf(drawn.numpy()).reshape(4000, -1)
    if name == "VonMises":  # SciPy's distribution function increases by 1 with each turn
        u %= 1
    assert all(stats.kstest(column, "uniform").pvalue > 1e-4 for column in u.T)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_mode_is_likeliest(name):
    dist = CONTINUOUS[name][0]()
    mode, support = dist.mode, dist.support
    step = 1e-3 * (1 + mode.abs())
    there_is = support.check(mode)  # not NaN, and not outside of an open support
    assert bool(there_is.any())
    middle = dist.sample()
    here = dist.log_prob(core.where(there_is, mode, middle))
    for beside in (mode - step, mode + step):
        inside = there_is & support.check(beside)
        there = dist.log_prob(core.where(inside, beside, middle))
        assert not bool((inside & (here < there)).any())


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    make, family, values = DISCRETE[name]
    dist, scipy = make(), family(*PARAMETERS[name])
    points = np.array(values).reshape(-1, 1)
    np.testing.assert_allclose(dist.log_prob(t(points)).numpy(), scipy.logpmf(points), rtol=1e-9)
    np.testing.assert_allclose(dist.mean.numpy(), scipy.mean(), rtol=1e-12)
    np.testing.assert_allclose(dist.variance.numpy(), scipy.var(), rtol=1e-12)
    drawn = dist.sample((8000,)).numpy()
    assert (np.abs(drawn.mean(0) - scipy.mean()) < 5 * scipy.std() / math.sqrt(8000)).all()
    for i in range(3):
        values, counts = np.unique(drawn[:, i], return_counts=True)
        assert (
            np.abs(np.cumsum(counts) / 8000 - family(*(p[i] for p in PARAMETERS[name])).cdf(values)) < 0.025
        ).all()
    likeliest = dist.mode.numpy()
    for beside in (likeliest - 1, likeliest + 1):
        assert (scipy.pmf(beside) <= scipy.pmf(likeliest) + 1e-12).all()


def test_binomial_entropy_and_values():
    dist = D.Binomial(7, t([0.2, 0.7]))
    np.testing.assert_allclose(dist.entropy().numpy(), stats.binom(7, [0.2, 0.7]).entropy(), rtol=1e-10)
    assert dist.enumerate_support().shape == (8, 2)
    assert dist.enumerate_support(expand=False).shape == (8, 1)
    with pytest.raises(NotImplementedError, match="total_count must be the same"):
        D.Binomial(t([2.0, 3.0]), t(0.5)).enumerate_support()


def test_multinomial():
    probs = np.array([[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]])
    dist = D.Multinomial(6, t(probs))
    drawn = dist.sample((5000,))
    assert drawn.shape == (5000, 2, 3)
    assert bool((drawn.sum(-1) == 6).all())
    np.testing.assert_allclose(drawn.mean(0).numpy(), 6 * probs, atol=0.1)
    for row in range(2):
        scipy = stats.multinomial(6, probs[row])
        np.testing.assert_allclose(
            dist.log_prob(drawn)[:9, row].numpy(), scipy.logpmf(drawn[:9, row].numpy())
        )
        assert float(dist.entropy()[row]) == pytest.approx(scipy.entropy())
    np.testing.assert_allclose(dist.variance.numpy(), 6 * probs * (1 - probs))
    sure = D.Multinomial(2, logits=core.tensor([0.0, -math.inf]))
    assert float(sure.log_prob(core.tensor([2.0, 0.0]))) == pytest.approx(0)


@pytest.mark.parametrize("dist", [D.Kumaraswamy(t(2.5), t(1.7)), D.Kumaraswamy(t(0.6), t(0.8))])
def test_kumaraswamy(dist):
    a, b = float(dist.concentration1), float(dist.concentration0)
    x = np.array([0.01, 0.4, 0.99])
    np.testing.assert_allclose(
        dist.log_prob(t(x)).exp().numpy(), a * b * x ** (a - 1) * (1 - x**a) ** (b - 1)
    )
    np.testing.assert_allclose(dist.cdf(t(x)).numpy(), 1 - (1 - x**a) ** b)
    moments = [b * special.beta(1 + n / a, b) for n in (1, 2)]
    assert float(dist.mean) == pytest.approx(moments[0])
    assert float(dist.variance) == pytest.approx(moments[1] - moments[0] ** 2)
    assert float(dist.entropy()) == pytest.approx(_entropy(dist, 0, 1), rel=1e-5)
    assert stats.kstest(dist.sample((3000,)).numpy(), lambda v: 1 - (1 - v**a) ** b).pvalue > 1e-4


def _entropy(dist, low, high):
    def surprise(x):
        log = float(dist.log_prob(t(x)))
        return -log * math.exp(log)

    return integrate.quad(surprise, low, high, limit=200)[0]


@pytest.mark.parametrize("probs", [1e-4, 0.3, 0.4989, 0.4991, 0.5, 0.5009, 0.5011, 0.9999])
def test_continuous_bernoulli(probs):
    dist = D.ContinuousBernoulli(t(probs))
    s = math.log(probs / (1 - probs))
    x = np.array([0.0, 0.3, 1.0])
    density = np.exp(s * x) * (s / math.expm1(s) if s else 1.0)
    np.testing.assert_allclose(dist.log_prob(t(x)).exp().numpy(), density, rtol=1e-10)
    moments = [
        integrate.quad(lambda v, n=n: v**n * float(dist.log_prob(t(v)).exp()), 0, 1)[0] for n in (1, 2)
    ]
    assert float(dist.mean) == pytest.approx(moments[0], rel=1e-8)
    assert float(dist.variance) == pytest.approx(moments[1] - moments[0] ** 2, rel=1e-6)
    assert float(dist.entropy()) == pytest.approx(_entropy(dist, 0, 1), rel=1e-8, abs=1e-10)
    u = t([0.1, 0.5, 0.9])
    np.testing.assert_allclose(dist.cdf(dist.icdf(u)).numpy(), u.numpy(), rtol=1e-7)
    below = [integrate.quad(lambda v: float(dist.log_prob(t(v)).exp()), 0, float(v))[0] for v in x]
    np.testing.assert_allclose(dist.cdf(t(x)).numpy(), below, rtol=1e-7, atol=1e-12)


def test_continuous_bernoulli_of_extreme_logits():
    dist = D.ContinuousBernoulli(logits=t([-2000.0, 2000.0]))
    drawn = dist.sample((100,))
    assert bool(core.isfinite(dist.log_prob(drawn)).all())
    np.testing.assert_allclose(dist.mean.numpy(), [1 / 2000, 1 - 1 / 2000])


def test_small_parameters_in_single_precision():
    core.manual_seed(1)
    tiny = core.full((2000,), 1e-3)
    for dist in (D.Gamma(tiny, tiny), D.Beta(tiny, tiny), D.StudentT(tiny), D.InverseGamma(tiny, tiny)):
        assert not bool(dist.sample().isnan().any())
    # One part gets the whole weight, and it is not always the same part.
    drawn = D.Dirichlet(core.full((2000, 3), 1e-3)).sample()
    assert bool((drawn.sum(-1) - 1).abs().max() < 1e-6)
    np.testing.assert_allclose(drawn.mean(0).numpy(), 1 / 3, atol=0.05)
    beta = D.Beta(tiny, tiny).sample()
    assert 0.45 < float((beta > 0.5).float().mean()) < 0.55


def test_nothing_to_draw():
    assert D.Categorical(core.ones(3)).sample((2, 0)).shape == (2, 0)
    assert D.Categorical(core.ones(0, 3)).sample((2,)).shape == (2, 0)
    assert D.Multinomial(0, core.ones(3)).sample().tolist() == [0, 0, 0]
    assert D.Gamma(core.ones(0), 1.0).sample((2,)).shape == (2, 0)


def test_relaxed_choices():
    probs = t([0.2, 0.5, 0.3])
    dist = D.RelaxedOneHotCategorical(t(0.5), probs)
    drawn = dist.rsample((4000,))
    np.testing.assert_allclose(drawn.sum(-1).numpy(), 1, rtol=1e-12)
    # The distribution of the largest part does not depend on the temperature.
    shares = np.bincount(drawn.argmax(-1).numpy(), minlength=3) / 4000
    np.testing.assert_allclose(shares, probs.numpy(), atol=0.03)
    # Maddison, Mnih and Teh's density.
    x = np.array([0.3, 0.3, 0.4])
    powers = probs.numpy() * x**-1.5
    expected = math.gamma(3) * 0.5**2 * np.prod(powers / (probs.numpy() * x**-0.5).sum())
    assert float(dist.log_prob(t(x)).exp()) == pytest.approx(expected)
    binary = D.RelaxedBernoulli(t(0.5), t(0.3))
    inside = integrate.quad(lambda v: float(binary.log_prob(t(v)).exp()), 0, 1)[0]
    assert inside == pytest.approx(1, rel=1e-4)
    assert float((binary.sample((4000,)) > 0.5).double().mean()) == pytest.approx(0.3, abs=0.03)


def test_straight_through():
    dist = D.OneHotCategoricalStraightThrough(t([[0.2, 0.8], [0.5, 0.5]]))
    drawn = dist.rsample((7,))
    assert dist.has_rsample
    np.testing.assert_allclose(drawn.sum(-1).numpy(), 1)
    np.testing.assert_allclose(np.sort(drawn.numpy(), -1)[..., 0], 0, atol=1e-15)


@pytest.mark.parametrize(("concentration", "expected"), [(0.5, math.inf), (1.0, 0.0), (2.0, -math.inf)])
def test_the_density_of_gamma_at_a_number(concentration, expected):
    assert float(D.Gamma(concentration, 1.0).log_prob(0)) == expected


@pytest.mark.parametrize("concentration", [0.0, 1e-20, 0.5])
def test_generalized_pareto_at_infinity(concentration):
    dist = D.GeneralizedPareto(t(0.0), t(1.0), t(concentration))
    assert dist.icdf(t(1.0)).item() == math.inf
    assert dist.cdf(t(math.inf)).item() == 1
    assert dist.log_survival_function(t(math.inf)).item() == -math.inf
    assert dist.log_prob(t(math.inf)).item() == -math.inf


def test_generalized_pareto_of_numbers_whose_square_overflows():
    dist = D.GeneralizedPareto(0.0, 1.0, 0.0)
    assert dist.cdf(core.tensor(1e30)).item() == 1
