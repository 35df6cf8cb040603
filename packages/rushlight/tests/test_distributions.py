"""Distributions with autograd: gradients of samples, densities and divergences, and PyTorch's module paths."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight import distributions as D
from rushlight.distributions import constraints

F64 = torch.float64


def t(values: Any, grad: bool = False) -> Any:
    return torch.tensor(values, dtype=F64, requires_grad=grad)


# For each distribution: its class, its parameters, and the mean as a function of the parameters.
MEANS: dict[str, tuple[Callable[..., Any], list[Any], Callable[..., Any]]] = {
    "Gamma": (D.Gamma, [[0.3, 5.0], [2.0, 0.7]], lambda a, b: a / b),
    "Beta": (D.Beta, [[0.5, 3.0], [2.0, 1.5]], lambda a, b: a / (a + b)),
    "Chi2": (D.Chi2, [[0.7, 9.0]], lambda k: k),
    "Dirichlet": (D.Dirichlet, [[0.5, 2.0, 1.0]], lambda a: a / a.sum()),
    "StudentT": (D.StudentT, [[9.0], [1.0], [2.0]], lambda df, loc, scale: loc + 0 * df * scale),
    "FisherSnedecor": (D.FisherSnedecor, [[5.0], [12.0]], lambda a, b: b / (b - 2) + 0 * a),
    "InverseGamma": (D.InverseGamma, [[6.0], [2.0]], lambda a, b: b / (a - 1)),
    "Weibull": (D.Weibull, [[2.0], [1.7]], lambda s, k: s * torch.exp(torch.lgamma(1 + 1 / k))),
    "Pareto": (D.Pareto, [[2.0], [5.0]], lambda s, a: a * s / (a - 1)),
    "Kumaraswamy": (
        D.Kumaraswamy,
        [[2.0], [3.0]],
        lambda a, b: (b.log() + torch.lgamma(1 + 1 / a) + b.lgamma() - torch.lgamma(1 + 1 / a + b)).exp(),
    ),
    "ContinuousBernoulli": (
        D.ContinuousBernoulli,
        [[0.2, 0.5, 0.9]],
        lambda p: D.ContinuousBernoulli(p).mean,
    ),
    "GeneralizedPareto": (
        D.GeneralizedPareto,
        [[1.0, 1.0], [2.0, 2.0], [0.2, 0.0]],
        lambda loc, scale, c: loc + scale / (1 - c),
    ),
    "LogNormal": (D.LogNormal, [[0.5], [0.4]], lambda m, s: (m + s * s / 2).exp()),
    "HalfNormal": (D.HalfNormal, [[2.0]], lambda s: s * math.sqrt(2 / math.pi)),
}


@pytest.mark.parametrize("name", MEANS)
def test_samples_move_with_their_parameters(name: str) -> None:
    """Gradients of the mean of many samples equal those of the mean, within the standard error of the gradients."""
    make, values, mean = MEANS[name]
    torch.manual_seed(4)
    n = 20_000
    wide = [t([v] * n, grad=True) for v in values]
    make(*wide)
    weights = torch.arange(1.0, 1 + len(values[0]), dtype=F64)
    samples = make(*wide).rsample()
    gradients = torch.autograd.grad((samples * weights).sum(), wide)
    exact = [t(v, grad=True) for v in values]
    expected = torch.autograd.grad((mean(*exact) * weights).sum(), exact)
    for found, wanted in zip(gradients, expected, strict=True):
        error = found.std(0) / math.sqrt(n)
        assert bool(((found.mean(0) - wanted).abs() <= 5 * error + 1e-9).all()), (found.mean(0), wanted)


def test_second_derivatives_of_samples() -> None:
    torch.manual_seed(0)
    a = t([[0.4, 2.0, 30.0]] * 20_000, grad=True)
    z = torch.distributions.Gamma(a, 1.0).rsample()
    (slope,) = torch.autograd.grad((z * z).sum(), a, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), a)
    # The mean of z² is a² + a.
    for found, wanted in ((slope, 2 * a[0] + 1), (bend, t([2.0, 2.0, 2.0]))):
        error = found.std(0) / math.sqrt(20_000)
        assert bool(((found.mean(0) - wanted).abs() <= 5 * error).all())


LOG_DENSITIES: dict[str, tuple[Callable[..., Any], list[Any], Any]] = {
    "Gamma": (D.Gamma, [[0.3, 5.0], [2.0, 0.7]], [0.2, 3.0]),
    "Beta": (D.Beta, [[0.5, 3.0], [2.0, 1.5]], [0.2, 0.9]),
    "Dirichlet": (D.Dirichlet, [[0.5, 2.0, 1.0]], [0.2, 0.3, 0.5]),
    "StudentT": (D.StudentT, [[3.0], [1.0], [2.0]], [0.3]),
    "FisherSnedecor": (D.FisherSnedecor, [[5.0], [12.0]], [0.8]),
    "VonMises": (D.VonMises, [[0.3], [2.0]], [1.1]),
    "GeneralizedPareto": (D.GeneralizedPareto, [[0.0] * 3, [2.0] * 3, [0.2, 0.0, -0.3]], [1.0, 2.0, 0.5]),
    "ContinuousBernoulli": (
        lambda p: D.ContinuousBernoulli(logits=p),
        [[-2.0, 0.0, 1e-3, 3.0]],
        [0.1, 0.2, 0.7, 0.9],
    ),
    "Weibull": (D.Weibull, [[2.0], [1.7]], [0.9]),
    "Kumaraswamy": (D.Kumaraswamy, [[2.0], [3.0]], [0.3]),
    "InverseGamma": (D.InverseGamma, [[6.0], [2.0]], [0.5]),
    "Gumbel": (D.Gumbel, [[1.0], [2.0]], [0.5]),
    "LogisticNormal": (D.LogisticNormal, [[0.3, -1.0], [1.0, 0.5]], [0.2, 0.3, 0.5]),
    "RelaxedOneHot": (
        lambda p: D.RelaxedOneHotCategorical(t(0.7), logits=p),
        [[0.3, -1.0, 0.2]],
        [0.2, 0.3, 0.5],
    ),
    "LowRank": (D.LowRankMultivariateNormal, [[0.3, -1.0], [[1.0], [0.4]], [0.5, 2.0]], [0.2, 0.7]),
    "LKJCholesky": (lambda c: D.LKJCholesky(2, c), [1.7], [[1.0, 0.0], [0.6, 0.8]]),
    "Mixture": (
        lambda w, m: D.MixtureSameFamily(D.Categorical(logits=w), D.Normal(m, 1.0)),
        [[0.1, 0.4], [-1.0, 2.0]],
        0.3,
    ),
}


@pytest.mark.parametrize("name", LOG_DENSITIES)
def test_gradients_of_log_densities(name: str) -> None:
    make, values, at = LOG_DENSITIES[name]
    inputs = [t(v, grad=True) for v in values]
    torch.autograd.gradcheck(lambda *p: make(*p).log_prob(t(at)), inputs)


def test_gradients_of_distribution_functions() -> None:
    x = t([0.1, 0.9, 3.0], grad=True)
    a, b = t([0.4, 1.0, 7.0], grad=True), t([1.0, 2.0, 0.5], grad=True)
    torch.autograd.gradcheck(lambda *p: D.Gamma(*p).cdf(x), [a, b])
    torch.autograd.gradgradcheck(lambda *p: D.Gamma(*p).cdf(x), [a, b])


def test_gradients_of_wishart_and_normal_vectors() -> None:
    factor = t([[1.5, 0.0], [0.3, 0.8]], grad=True)
    x = t([[2.0, 0.4], [0.4, 1.0]])
    torch.autograd.gradcheck(
        lambda s, df: D.Wishart(df, scale_tril=s.tril()).log_prob(x), [factor, t(3.5, grad=True)]
    )
    torch.autograd.gradcheck(
        lambda s, m: D.MultivariateNormal(m, scale_tril=s.tril()).log_prob(x),
        [factor, t([0.1, 0.2], grad=True)],
    )
    D.Wishart(t(3.5), scale_tril=factor).rsample((3,)).sum().backward()
    assert factor.grad is not None
    assert bool(torch.isfinite(factor.grad).all())


def test_entropies_of_exponential_families_are_gradients() -> None:
    for dist in (
        D.Gamma(t([0.5, 3.0]), t(2.0)),
        D.Normal(t([0.5, 3.0]), t(2.0)),
        D.Exponential(t([0.5, 3.0])),
        D.Bernoulli(t([0.1, 0.5])),
        D.ContinuousBernoulli(t([0.1, 0.5])),
    ):
        torch.testing.assert_close(D.ExponentialFamily.entropy(dist), dist.entropy())
    p = D.Wishart(t([3.5, 5.0]), t([[2.0, 0.3], [0.3, 1.0]]))
    q = D.Wishart(t(4.0), torch.eye(2, dtype=F64))
    torch.manual_seed(2)
    drawn = p.sample((20_000,))
    ratio = p.log_prob(drawn) - q.log_prob(drawn)
    error = ratio.std(0) / math.sqrt(20_000)
    assert bool(((ratio.mean(0) - D.kl_divergence(p, q)).abs() < 5 * error).all())


def test_pytorchs_paths() -> None:
    from rushlight.distributions.constraint_registry import biject_to
    from rushlight.distributions.kl import kl_divergence
    from rushlight.distributions.normal import Normal
    from rushlight.distributions.transforms import ExpTransform
    from rushlight.distributions.utils import broadcast_all

    assert Normal is D.Normal
    assert kl_divergence is D.kl_divergence
    assert isinstance(biject_to(constraints.positive), ExpTransform)
    assert len(broadcast_all(1, 2)) == 2
    assert D.multivariate_normal.MultivariateNormal is D.MultivariateNormal
    assert constraints.positive is D.Normal.arg_constraints["scale"]
    with pytest.raises(AttributeError, match="nowhere"):
        _ = D.nowhere  # type: ignore[attr-defined]


def test_a_variational_posterior_is_found() -> None:
    """Find the gamma posterior of a Poisson rate by stochastic gradients through its samples."""
    torch.manual_seed(3)
    counts = torch.tensor([4.0, 7.0, 5.0, 6.0, 3.0, 5.0])
    prior = D.Gamma(2.0, 1.0)
    raw = torch.zeros(2, requires_grad=True)
    positive = D.biject_to(constraints.positive)
    optimizer = torch.optim.Adam([raw], lr=0.03)
    for _ in range(1500):
        concentration, rate = positive(raw).unbind()
        posterior = D.Gamma(concentration, rate)
        z = posterior.rsample((32,))
        likelihood = D.Poisson(z.unsqueeze(-1)).log_prob(counts).sum(-1).mean()
        loss = D.kl_divergence(posterior, prior) - likelihood
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    concentration, rate = positive(raw.detach()).tolist()
    # The exact posterior is Gamma(2 + sum, 1 + n).
    assert concentration / rate == pytest.approx(32 / 7, rel=0.05)
    assert concentration / rate**2 == pytest.approx(32 / 49, rel=0.35)


def test_one_distribution_serves_many_backward_passes() -> None:
    loc, scale = t([0.0, 1.0], grad=True), t(1.0, grad=True)
    dist = D.Normal(loc, scale)
    optimizer = torch.optim.SGD([loc, scale], lr=0.1)
    for _ in range(300):  # the distribution uses parameters that are updated in place
        optimizer.zero_grad()
        (-dist.log_prob(t([[3.0, 5.0], [3.5, 5.5], [4.0, 6.0]]))).mean().backward()
        optimizer.step()
    torch.testing.assert_close(dist.mean.detach(), t([3.5, 5.5]), rtol=1e-3, atol=0.0)
    assert scale.item() == pytest.approx(math.sqrt(1 / 6), rel=1e-2)


def test_vmap_draws() -> None:
    from rushlight.func import vmap

    shapes = t([0.5, 3.0, 20.0])
    for how in ("same", "different"):
        drawn = vmap(lambda a: torch._standard_gamma(a.expand(4)), randomness=how)(shapes)
        assert drawn.shape == (3, 4)
    same = vmap(lambda n, p: torch.binomial(n.expand(50), p), randomness="same")(t([9.0, 9.0]), t([0.3, 0.3]))
    assert torch.equal(same[0], same[1])
    other = vmap(lambda p: torch.binomial(t(9.0), p.expand(50)), randomness="different")(t([0.3, 0.3]))
    assert not torch.equal(other[0], other[1])
    slopes = vmap(
        torch.func.grad(lambda a: D.Gamma(a, t(1.0), validate_args=False).rsample()), randomness="different"
    )(shapes)
    assert bool((slopes > 0).all())


@pytest.mark.parametrize(
    ("make", "moment", "poles", "other"),
    [
        (lambda a, s: D.Pareto(s, a), "mean", [0.5, 1.0], 2.0),
        (lambda a, s: D.Pareto(s, a), "variance", [0.5, 1.0, 1.5, 2.0], 3.0),
        (lambda a, s: D.GeneralizedPareto(0.0, s, a), "mean", [1.0, 2.0], 0.5),
        (lambda a, s: D.GeneralizedPareto(0.0, s, a), "variance", [0.5, 1.0, 2.0], 0.25),
        (lambda a, s: D.StudentT(a, 0.0, s), "variance", [0.5, 1.0, 1.5, 2.0], 3.0),
        (lambda a, s: D.FisherSnedecor(s, a), "variance", [1.0, 2.0, 3.0, 4.0], 5.0),
        (lambda a, s: D.FisherSnedecor(s, a), "mean", [1.0, 2.0], 3.0),
        (lambda a, s: D.InverseGamma(a, s), "mean", [0.5, 1.0], 2.0),
        (lambda a, s: D.InverseGamma(a, s), "variance", [0.5, 1.0, 2.0], 3.0),
    ],
)
def test_gradients_of_infinite_moments_are_zero(
    make: Callable[..., Any], moment: str, poles: list[float], other: float
) -> None:
    shape = t([*poles, other], grad=True)
    scale = t([2.0] * (len(poles) + 1), grad=True)
    value = getattr(make(shape, scale), moment)
    assert value.isfinite().tolist() == [False] * len(poles) + [True]
    slopes = torch.autograd.grad(value[value.isfinite()].sum(), (shape, scale), allow_unused=True)
    alone = t([other], grad=True), t([2.0], grad=True)
    expected = torch.autograd.grad(getattr(make(*alone), moment).sum(), alone, allow_unused=True)
    for slope, last in zip(slopes, expected, strict=True):
        if last is not None:
            assert slope.tolist() == [0.0] * len(poles) + last.tolist()
