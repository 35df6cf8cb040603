"""Random numbers of the stream "torch" equal PyTorch's bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from random_stream_cases import NOT_ON_INTEL, all_cases, drawn  # noqa: E402

import rushlight  # noqa: E402

OURS, THEIRS = all_cases(rushlight), all_cases(torch)
INTEL = "GenuineIntel" in Path("/proc/cpuinfo").read_text()


@pytest.fixture(autouse=True)
def stream():
    with rushlight.random.stream("torch"):
        yield


@pytest.mark.parametrize("name", OURS)
def test_numbers_are_equal(name):
    if INTEL and any(word in name for word in NOT_ON_INTEL):
        pytest.skip("PyTorch draws these from MKL's generator on processors of Intel")
    for seed in (0, 5, 2**40 + 3):
        for ours, theirs in zip(
            drawn(rushlight, OURS[name], seed), drawn(torch, THEIRS[name], seed), strict=True
        ):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


def test_states_are_exchanged():
    rushlight.manual_seed(11)
    torch.manual_seed(11)
    for steps in range(3):
        assert rushlight.randn(5).tolist() == torch.randn(5).tolist()
        state = torch.get_rng_state()
        expected = torch.randn(steps + 3).tolist()
        rushlight.set_rng_state(rushlight.from_numpy(state.numpy()))
        torch.set_rng_state(torch.from_numpy(rushlight.get_rng_state().numpy()))
        assert torch.randn(steps + 3).tolist() == expected
        assert rushlight.randn(steps + 3).tolist() == expected


def layer_calls(lib):
    """Return calls of layers that may order the elements of their results in memory in their own way."""
    nn, F = lib.nn, lib.nn.functional
    calls = {}
    for first in (False, True):
        x = lib.linspace(-1, 1, 3 * 5 * 8).reshape(3, 5, 8)
        for weights in (False, True):
            calls[f"attention {first} {weights}"] = lambda first=first, weights=weights, x=x: (
                nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=first)(x, x, x, need_weights=weights)[0]
            )
        calls[f"attention to others {first}"] = lambda first=first, x=x: nn.MultiheadAttention(
            8, 2, batch_first=first
        )(x, x + 1, x)[0]
        for name in ("Encoder", "Decoder"):
            calls[f"{name} {first}"] = lambda first=first, name=name, x=x: getattr(
                nn, f"Transformer{name}Layer"
            )(8, 2, 16, 0.3, batch_first=first)(*(x,) * (1 + (name == "Decoder")))
        calls[f"transformer {first}"] = lambda first=first, x=x: nn.Transformer(
            8, 2, 1, 1, 16, 0.2, batch_first=first
        )(x, x)
        for name in ("RNN", "LSTM", "GRU"):
            calls[f"{name} {first}"] = lambda first=first, name=name, x=x: getattr(nn, name)(
                8, 6, 2, dropout=0.3, batch_first=first
            )(x)[0]
    image = lib.linspace(-1, 1, 2 * 4 * 6 * 6).reshape(2, 4, 6, 6)
    for name, given in (("rows", image), ("channels last", image.to(memory_format=lib.channels_last))):
        calls |= {
            f"conv {name}": lambda given=given: nn.Conv2d(4, 6, 3)(given),
            f"conv_transpose {name}": lambda given=given: nn.ConvTranspose2d(4, 6, 3)(given),
            f"pool {name}": lambda given=given: nn.MaxPool2d(2)(given),
            f"average {name}": lambda given=given: nn.AdaptiveAvgPool2d(3)(given),
            f"batch_norm {name}": lambda given=given: nn.BatchNorm2d(4)(given),
            f"group_norm {name}": lambda given=given: nn.GroupNorm(2, 4)(given),
            f"upsample {name}": lambda given=given: F.interpolate(given, scale_factor=2, mode="bilinear"),
            f"pad {name}": lambda given=given: F.pad(given, (1, 1)),
            f"linear {name}": lambda given=given: nn.Linear(6, 5)(given.transpose(1, 2)),
            f"layer_norm {name}": lambda given=given: nn.LayerNorm(6)(given.transpose(2, 3)),
            f"shuffle {name}": lambda given=given: F.pixel_shuffle(given, 2),
            f"flatten {name}": lambda given=given: given.flatten(2).transpose(1, 2),
            f"unfold {name}": lambda given=given: F.unfold(given, 2),
            f"softmax {name}": lambda given=given: given.transpose(0, 2).softmax(1),
            f"einsum {name}": lambda given=given: lib.einsum("bchw,bchv->bhwv", given, given),
            f"matmul {name}": lambda given=given: given.transpose(1, 2) @ given.permute(0, 2, 3, 1),
        }
    calls["embedding"] = lambda: nn.Embedding(5, 3)(lib.arange(5).reshape(1, 5).expand(2, 5).t())
    calls["bilinear"] = lambda: nn.Bilinear(8, 8, 3)(image.reshape(36, 8), image.reshape(36, 8))
    return calls


OUR_LAYERS, THEIR_LAYERS = layer_calls(rushlight), layer_calls(torch)


@pytest.mark.parametrize("name", OUR_LAYERS)
def test_a_dropout_after_a_layer_draws_the_same_mask(name):
    if INTEL:
        pytest.skip("PyTorch draws masks from MKL's generator on processors of Intel")
    found = []
    for lib, call in ((rushlight, OUR_LAYERS[name]), (torch, THEIR_LAYERS[name])):
        lib.manual_seed(3)
        dropped = lib.nn.functional.dropout(call(), 0.5)
        found.append((dropped.detach().numpy(), lib.rand(3).tolist()))
    np.testing.assert_array_equal(found[0][0] == 0, found[1][0] == 0)
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-3, atol=1e-5)
    assert found[0][1] == found[1][1]


def distributions_of(lib):
    """Return distributions of every family, except the families that draw from gamma, Poisson and binomial distributions.

    For these, the libraries use different methods.
    """
    D, tensor = lib.distributions, lib.tensor
    a, b = tensor([0.5, 1.5, 2.5]), tensor([1.0, 2.0, 0.5])
    return {
        "Bernoulli": lambda: D.Bernoulli(a / 3),
        "Categorical": lambda: D.Categorical(a),
        "Cauchy": lambda: D.Cauchy(a, b),
        "ContinuousBernoulli": lambda: D.ContinuousBernoulli(a / 3),
        "Exponential": lambda: D.Exponential(a),
        "GeneralizedPareto": lambda: D.GeneralizedPareto(a, b, tensor([0.3, 0.0, -0.2])),
        "Geometric": lambda: D.Geometric(a / 3),
        "Gumbel": lambda: D.Gumbel(a, b),
        "HalfCauchy": lambda: D.HalfCauchy(b),
        "HalfNormal": lambda: D.HalfNormal(b),
        "Independent": lambda: D.Independent(D.Normal(a, b), 1),
        "Kumaraswamy": lambda: D.Kumaraswamy(a, b),
        "Laplace": lambda: D.Laplace(a, b),
        "LogNormal": lambda: D.LogNormal(a, b),
        "LogisticNormal": lambda: D.LogisticNormal(a, b),
        "LowRankMultivariateNormal": lambda: D.LowRankMultivariateNormal(a, b[:, None], b),
        "MixtureSameFamily": lambda: D.MixtureSameFamily(D.Categorical(a), D.Normal(a, b)),
        "Multinomial": lambda: D.Multinomial(10, a),
        "MultivariateNormal": lambda: D.MultivariateNormal(a, lib.diag(b)),
        "Normal": lambda: D.Normal(a, b),
        "OneHotCategorical": lambda: D.OneHotCategorical(a),
        "Pareto": lambda: D.Pareto(a, b),
        "RelaxedBernoulli": lambda: D.RelaxedBernoulli(tensor(2.2), a / 3),
        "RelaxedOneHotCategorical": lambda: D.RelaxedOneHotCategorical(tensor(2.2), a),
        "TransformedDistribution": lambda: D.TransformedDistribution(
            D.Normal(a, b), [D.AffineTransform(1.0, 2.0), D.TanhTransform()]
        ),
        "Uniform": lambda: D.Uniform(a, a + b),
        "VonMises": lambda: D.VonMises(a, b),
        "VonMises of float64": lambda: D.VonMises(a.double(), 5 * b.double()),
        "Weibull": lambda: D.Weibull(a, b),
    }


OUR_FAMILIES, THEIR_FAMILIES = distributions_of(rushlight), distributions_of(torch)


@pytest.mark.parametrize("name", OUR_FAMILIES)
def test_samples_of_distributions_are_equal(name):
    if INTEL:
        pytest.skip("PyTorch draws some numbers from MKL's generator on processors of Intel")
    for shape in ((7,), ()):
        found = []
        for lib, families in ((rushlight, OUR_FAMILIES), (torch, THEIR_FAMILIES)):
            lib.manual_seed(3)
            sample = families[name]().sample(shape)
            found.append((sample.numpy(), lib.rand(3).tolist()))
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4, atol=1e-6)
        assert found[0][1] == found[1][1]
