"""Pruning."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn.utils import prune


def conv():
    layer = nn.Conv2d(2, 3, 2)
    with core.no_grad():
        layer.weight.copy_(((core.arange(24.0) * 7) % 24).reshape(3, 2, 2, 2) - 11.75)
    return layer


def zeros(tensor):
    return int((tensor == 0).sum())


def test_the_smallest_elements_are_pruned():
    layer = conv()
    original = layer.weight
    values = original.detach().numpy().copy()
    assert prune.l1_unstructured(layer, "weight", 5) is layer
    least = np.sort(np.abs(values).ravel())[4]
    np.testing.assert_array_equal(layer.weight_mask.numpy(), (np.abs(values) > least).astype(np.float32))
    np.testing.assert_array_equal(layer.weight.detach().numpy(), values * layer.weight_mask.numpy())
    assert layer.weight_orig is original
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    assert prune.is_pruned(layer)
    assert prune.is_pruned(nn.Sequential(layer))
    assert zeros(copy.deepcopy(layer.weight_mask)) == 5


def test_forward_uses_the_pruned_weight():
    layer = prune.l1_unstructured(nn.Linear(4, 1, bias=False), "weight", 0.5)
    with core.no_grad():
        layer.weight_orig.fill_(1.0)
    assert layer(core.ones(1, 4)).tolist() == [[2.0]]


def test_channels_of_least_norm():
    layer = conv()
    norms = np.abs(layer.weight.detach().numpy()).sum((0, 2, 3))
    prune.ln_structured(layer, "weight", 1, n=1, dim=1)
    assert zeros(layer.weight_mask[:, int(norms.argmin())]) == 12
    assert zeros(layer.weight_mask) == 12


def test_pruning_again_prunes_of_what_is_left():
    layer = conv()
    prune.ln_structured(layer, "weight", 1, n=2, dim=0)
    prune.l1_unstructured(layer, "weight", 0.5)
    assert zeros(layer.weight_mask) == 8 + 8
    prune.random_structured(layer, "weight", 1, dim=0)
    assert sum(bool((row == 0).all()) for row in layer.weight_mask) >= 2
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer)
    assert [type(method).__name__ for method in hook] == [
        "LnStructured",
        "L1Unstructured",
        "RandomStructured",
    ]


def test_at_random():
    layer = prune.random_unstructured(conv(), "weight", 6)
    assert zeros(layer.weight_mask) == 6
    layer = prune.random_structured(conv(), "weight", 0.34, dim=0)
    assert zeros(layer.weight_mask) == 8
    assert zeros(prune.identity(conv(), "weight").weight_mask) == 0
    layer = prune.custom_from_mask(conv(), "bias", core.tensor([1, 0, 1]))
    assert layer.bias_mask.tolist() == [1.0, 0.0, 1.0]


def test_removal():
    layer = prune.l1_unstructured(conv(), "weight", 5)
    original, value = layer.weight_orig, layer.weight.tolist()
    prune.remove(layer, "weight")
    assert layer.weight is original
    assert layer.weight.tolist() == value
    assert list(layer.state_dict()) == ["bias", "weight"]
    assert not prune.is_pruned(layer)
    with pytest.raises(ValueError, match="not pruned"):
        prune.remove(layer, "weight")


def test_several_parameters_together():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    with core.no_grad():
        net[1].weight.fill_(10.0)
    pairs = [(net[0], "weight"), (net[1], "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.25)
    assert (zeros(net[0].weight_mask), zeros(net[1].weight_mask)) == (8, 0)
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=8)
    assert (zeros(net[0].weight_mask), zeros(net[1].weight_mask)) == (16, 0)


def test_scores_in_the_place_of_values():
    layer = prune.l1_unstructured(
        conv(), "weight", 3, importance_scores=core.arange(24.0).reshape(3, 2, 2, 2)
    )
    assert layer.weight_mask.flatten().tolist() == [0.0] * 3 + [1.0] * 21
    t = core.tensor([3.0, -1.0, 2.0])
    assert prune.L1Unstructured(1).prune(t).tolist() == [3.0, 0.0, 2.0]
    assert prune.L1Unstructured(1).prune(t, importance_scores=-t.sign() + 5).tolist() == [0.0, -1.0, 2.0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: prune.l1_unstructured(conv(), "weight", -1), ValueError, "got -1"),
        (lambda: prune.l1_unstructured(conv(), "weight", 1.5), ValueError, "from 0 to 1"),
        (lambda: prune.l1_unstructured(conv(), "weight", 25), ValueError, "needs at most 24"),
        (lambda: prune.l1_unstructured(conv(), "weight", "half"), TypeError, "needs a number"),
        (lambda: prune.l1_unstructured(conv(), "stride", 1), ValueError, "no parameter 'stride'"),
        (lambda: prune.ln_structured(conv(), "bias", 1, 2, 0), ValueError, "at least 2"),
        (lambda: prune.ln_structured(conv(), "weight", 1, 2, 4), IndexError, "got 4"),
        (
            lambda: prune.global_unstructured([(conv(), "weight")], prune.LnStructured, amount=1, n=2),
            TypeError,
            "needs 'unstructured'",
        ),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_the_mask_of_a_container_has_the_dtype_of_the_tensor():
    container = prune.PruningContainer()
    container._tensor_name = "test"
    method = prune.L1Unstructured(amount=2)
    method._tensor_name = "test"
    container.add_pruning_method(method)
    before = core.tensor([[1, 1, 1, 0], [1, 1, 0, 1]])
    mask = container.compute_mask(core.arange(1.0, 9.0).reshape(2, 4), before)
    assert mask.dtype == core.float32
    assert mask.tolist() == [[0, 0, 1, 0], [1, 1, 0, 1]]
    assert before[0].tolist() == [1, 1, 1, 0]


def test_removal_keeps_the_tensors_of_an_earlier_state_dict():
    layer = conv()
    values = layer.weight.detach().clone()
    weight = layer.weight
    prune.l1_unstructured(layer, "weight", 5)
    state = layer.state_dict()
    prune.remove(layer, "weight")
    assert layer.weight is weight
    assert zeros(weight) == 5
    assert core.equal(state["weight_orig"], values)
