"""Gradients through parametrized weights, lazy layers and losses for many classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import parametrizations, parametrize, prune

Options = nn.LinearCrossEntropyOptions


def train(model: Any, steps: int = 5, decay: float = 0.0) -> list[float]:
    torch.manual_seed(0)
    x, y = torch.randn(16, 4), torch.randn(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=decay)
    losses = []
    for _ in range(steps):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
def test_an_orthogonal_weight_stays_so_while_it_learns(how: str) -> None:
    model = parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map=how)
    start = model.weight.detach().clone()
    losses = train(model, decay=0.05)
    assert losses[-1] < losses[0]
    assert not torch.allclose(model.weight, start, atol=1e-3)
    torch.testing.assert_close(model.weight.mT @ model.weight, torch.eye(4), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_the_older_hooks_learn_what_parametrizations_learn(name: str) -> None:
    results = []
    for home in (nn.utils, parametrizations):
        torch.manual_seed(1)
        results.append(
            train(
                getattr(home, name)(
                    nn.Linear(4, 4), **({} if name == "weight_norm" else {"n_power_iterations": 40})
                )
            )
        )
    assert results[0][-1] < results[0][0]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4)


def test_gradients_reach_the_original() -> None:
    class Exp(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.exp()

        def right_inverse(self, y: torch.Tensor) -> torch.Tensor:
            return y.log()

    layer = nn.Linear(2, 1, bias=False)
    layer.weight = nn.Parameter(torch.tensor([[2.0, 3.0]]))
    parametrize.register_parametrization(layer, "weight", Exp())
    layer(torch.tensor([[1.0, 10.0]])).backward()
    torch.testing.assert_close(layer.parametrizations.weight.original.grad, torch.tensor([[2.0, 30.0]]))
    with parametrize.cached():
        (layer(torch.ones(1, 2)) + layer(torch.ones(1, 2))).backward()


def test_pruned_elements_get_no_gradient() -> None:
    layer = prune.l1_unstructured(nn.Linear(4, 4), "weight", 0.5)
    train(layer, 3)
    mask = layer.weight_mask
    assert torch.equal(layer.weight_orig.grad == 0, mask == 0)
    assert torch.equal(layer.weight == 0, mask == 0)


def test_a_lazy_model_learns() -> None:
    model = nn.Sequential(nn.LazyLinear(8), nn.Tanh(), nn.LazyBatchNorm1d(), nn.LazyLinear(4))
    losses = train(model, 10)
    assert losses[-1] < losses[0]
    assert [type(m) for m in model] == [nn.Linear, nn.Tanh, nn.BatchNorm1d, nn.Linear]


def test_adaptive_softmax_learns() -> None:
    torch.manual_seed(0)
    model = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)
    x, y = torch.randn(40, 8), torch.arange(40) % 20
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        loss = model(x, y).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("dims", [2, 3])
def test_gradient_of_fractional_pooling(dims: int) -> None:
    x = torch.randn(2, 3, *(7,) * dims, requires_grad=True)
    y, indices = getattr(nn.functional, f"fractional_max_pool{dims}d")(x, 2, 3, return_indices=True)
    y.sum().backward()
    counts = torch.zeros(2, 3, 7**dims).scatter_add(2, indices.flatten(2), torch.ones(2, 3, 3**dims))
    assert x.grad is not None
    assert torch.equal(x.grad.flatten(2), counts)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_chunks_have_the_gradients_of_the_whole(reduction: str) -> None:
    torch.manual_seed(0)
    weight = torch.linspace(0.5, 2, 7, dtype=torch.float64)
    results = []
    tensors = [torch.randn(size, dtype=torch.float64) for size in ((10, 5), (7, 5), (7,))]
    for options in (None, Options(batch_chunk_size=3)):
        x, w, b = (t.clone().requires_grad_() for t in tensors)
        loss = nn.functional.linear_cross_entropy(
            x, w, torch.arange(10) % 7, linear_bias=b, weight=weight, reduction=reduction, options=options
        )
        loss.square().sum().backward(retain_graph=True)
        loss.square().sum().backward()
        results.append([x.grad, w.grad, b.grad])
    for whole, chunked in zip(*results, strict=True):
        torch.testing.assert_close(chunked, whole)


def test_gradients_through_samples_and_of_log_probabilities() -> None:
    D = torch.distributions
    torch.manual_seed(0)
    loc, scale = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    noise = D.Normal(loc, scale).rsample((1000,))
    noise.mean().backward()
    assert loc.grad is not None
    assert scale.grad is not None
    assert loc.grad.item() == pytest.approx(1.0)
    assert scale.grad.item() == pytest.approx(((noise - loc) / scale).mean().item(), rel=1e-4)
    assert not D.Normal(loc, scale).sample().requires_grad
    # A policy learns which one of three actions is rewarded.
    logits = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([logits], lr=0.5)
    for _ in range(60):
        policy = D.Categorical(logits=logits)
        actions = policy.sample((32,))
        reward = (actions == 1).float()
        loss = -(policy.log_prob(actions) * (reward - reward.mean())).mean() - 0.01 * policy.entropy()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert D.Categorical(logits=logits).probs[1].item() > 0.9
