"""Tensors that are computed from other tensors: parametrize, the parametrizations, and the older hooks."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn.utils import (
    parametrizations,
    parametrize,
    remove_spectral_norm,
    remove_weight_norm,
    skip_init,
    spectral_norm,
    weight_norm,
)


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).mT

    def right_inverse(self, A):
        return A.triu()


class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, X):
        return X * self.factor

    def right_inverse(self, X):
        return X / self.factor


class Doubled(nn.Module):
    def forward(self, X):
        return X * 2


class Halves(nn.Module):
    def forward(self, a, b):
        return a + b

    def right_inverse(self, X):
        return X * 0.25, X * 0.75


class FirstRow(nn.Module):
    def forward(self, X):
        return X[:1]


def layer():
    result = nn.Linear(3, 3)
    with core.no_grad():
        result.weight.copy_(core.arange(9.0).reshape(3, 3))
    return result


SYMMETRIC = [[0.0, 1.0, 2.0], [1.0, 4.0, 5.0], [2.0, 5.0, 8.0]]


def test_a_tensor_is_computed_when_it_is_read():
    module = layer()
    weight = module.weight
    assert parametrize.register_parametrization(module, "weight", Symmetric()) is module
    assert module.weight.tolist() == SYMMETRIC
    assert module.parametrizations.weight.original is weight  # an optimizer may refer to it
    assert list(module.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert type(module).__name__ == "ParametrizedLinear"
    assert isinstance(module, nn.Linear)
    assert parametrize.type_before_parametrizations(module) is nn.Linear
    assert parametrize.is_parametrized(module)
    assert parametrize.is_parametrized(module, "weight")
    assert not parametrize.is_parametrized(module, "bias")
    assert not parametrize.is_parametrized(layer())
    np.testing.assert_allclose(
        module(core.eye(3)).detach().numpy(), np.array(SYMMETRIC) + module.bias.detach().numpy(), rtol=1e-6
    )
    with core.no_grad():
        weight.zero_()
    assert module.weight.tolist() == [[0.0] * 3] * 3


def test_several_are_applied_one_after_the_other_and_assigned_through_in_reverse():
    module = layer()
    parametrize.register_parametrization(module, "weight", Symmetric())
    parametrize.register_parametrization(module, "weight", Scaled(2.0))
    assert module.weight.tolist() == (2 * np.array(SYMMETRIC)).tolist()
    module.weight = core.full((3, 3), 4.0)
    assert module.weight.tolist() == [[4.0] * 3] * 3
    assert module.parametrizations.weight.original.tolist() == [
        [2.0, 2.0, 2.0],
        [0.0, 2.0, 2.0],
        [0.0, 0.0, 2.0],
    ]
    parametrize.register_parametrization(module, "bias", Doubled())
    with pytest.raises(RuntimeError, match="Doubled does not define right_inverse"):
        module.bias = core.zeros(3)


def test_several_originals():
    module = layer()
    parametrize.register_parametrization(module, "weight", Halves())
    steps = module.parametrizations.weight
    assert (steps.ntensors, steps.is_tensor) == (2, False)
    assert isinstance(steps.original0, nn.Parameter)
    assert steps.original1.tolist() == (0.75 * core.arange(9.0).reshape(3, 3)).tolist()
    module.weight = core.ones(3, 3)
    assert steps.original0.tolist() == [[0.25] * 3] * 3
    with pytest.raises(ValueError, match="2 tensors"):
        parametrize.remove_parametrizations(module, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(module, "weight")
    assert isinstance(module.weight, nn.Parameter)
    assert module.weight.tolist() == [[1.0] * 3] * 3
    assert module.weight.requires_grad


@pytest.mark.parametrize("leave", [True, False])
def test_removal(leave):
    module = layer()
    weight = module.weight
    parametrize.register_parametrization(module, "weight", Scaled(2.0))
    parametrize.register_parametrization(module, "bias", Doubled())
    bias = module.bias.tolist()
    expected = module.weight.tolist() if leave else module.parametrizations.weight.original.tolist()
    parametrize.remove_parametrizations(module, "weight", leave_parametrized=leave)
    assert module.weight is weight
    assert weight.tolist() == expected
    assert module.bias.tolist() == bias
    assert parametrize.is_parametrized(module)
    parametrize.remove_parametrizations(module, "bias")
    assert type(module) is nn.Linear
    assert not hasattr(module, "parametrizations")
    with pytest.raises(ValueError, match="not parametrized"):
        parametrize.remove_parametrizations(module, "bias")


def test_copies_and_pickles_are_independent():
    module = layer()
    parametrize.register_parametrization(module, "weight", Symmetric())
    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert copied.weight.tolist() == SYMMETRIC
        assert type(copied).__name__ == "ParametrizedLinear"
        parametrize.remove_parametrizations(copied, "weight")
        assert type(copied) is nn.Linear
        with core.no_grad():
            copied.weight.zero_()
        assert module.weight.tolist() == SYMMETRIC


def test_buffers_too():
    module = layer()
    module.register_buffer("shift", core.ones(3))
    parametrize.register_parametrization(module, "shift", Scaled(4.0))
    assert module.shift.tolist() == [1.0] * 3
    assert [name for name, _ in module.named_buffers()] == ["parametrizations.shift.original"]
    module.shift = core.full((3,), 8.0)
    assert module.parametrizations.shift.original.tolist() == [2.0] * 3
    parametrize.remove_parametrizations(module, "shift")
    assert module.shift.tolist() == [8.0] * 3
    assert "shift" in dict(module.named_buffers())


def test_values_are_kept_within_cached():
    module = layer()
    parametrize.register_parametrization(module, "weight", Symmetric())
    assert module.weight is not module.weight
    with parametrize.cached():
        inside = module.weight
        with parametrize.cached():
            assert module.weight is inside
        assert module.weight is inside
    assert module.weight is not inside


def test_what_is_refused_leaves_the_module_as_it_was():
    module = layer()
    state = list(module.state_dict())
    with pytest.raises(ValueError, match=r"must return shape \(3, 3\), got \(1, 3\)"):
        parametrize.register_parametrization(module, "weight", FirstRow())
    with pytest.raises(ValueError, match="no parameter or buffer 'in_features'"):
        parametrize.register_parametrization(module, "in_features", Symmetric())
    assert type(module) is nn.Linear
    assert list(module.state_dict()) == state
    parametrize.register_parametrization(module, "weight", FirstRow(), unsafe=True)
    assert module.weight.shape == (1, 3)


def test_transfer():
    source, target = layer(), layer()
    with core.no_grad():
        target.weight.zero_()
    parametrize.register_parametrization(source, "weight", Scaled(2.0))
    parametrize.transfer_parametrizations_and_params(source, target)
    assert target.weight.tolist() == source.weight.tolist()
    assert target.parametrizations.weight[0] is source.parametrizations.weight[0]
    assert target.parametrizations.weight.original is not source.parametrizations.weight.original
    with pytest.raises(ValueError, match="no parametrized tensor"):
        parametrize.transfer_parametrizations_and_params(layer(), target)


def test_weight_norm():
    module = nn.Conv2d(2, 3, 2)
    before = module.weight.detach().numpy().copy()
    parametrizations.weight_norm(module)
    np.testing.assert_allclose(module.weight.detach().numpy(), before, rtol=1e-5)
    g = module.parametrizations.weight.original0
    assert g.shape == (3, 1, 1, 1)
    np.testing.assert_allclose(
        g.detach().numpy().ravel(), np.linalg.norm(before.reshape(3, -1), axis=1), rtol=1e-5
    )
    with core.no_grad():
        g.fill_(2.0)
    norms = np.linalg.norm(module.weight.detach().numpy().reshape(3, -1), axis=1)
    np.testing.assert_allclose(norms, [2.0] * 3, rtol=1e-5)
    assert (
        parametrizations.weight_norm(nn.Linear(3, 2), dim=None).parametrizations.weight.original0.dim() == 0
    )
    assert parametrizations.weight_norm(nn.Linear(3, 2), dim=1).parametrizations.weight.original0.shape == (
        1,
        3,
    )


def test_the_older_weight_norm_and_its_states():
    module = weight_norm(nn.Linear(3, 2))
    assert list(module.state_dict()) == ["bias", "weight_g", "weight_v"]
    newer = parametrizations.weight_norm(nn.Linear(3, 2))
    newer.load_state_dict(module.state_dict())
    assert newer.weight.tolist() == module.weight.tolist()
    with core.no_grad():
        module.weight_g.mul_(3.0)
    module(core.ones(1, 3))
    np.testing.assert_allclose(module.weight.detach().numpy(), 3 * newer.weight.detach().numpy(), rtol=1e-6)
    with pytest.raises(RuntimeError, match="already"):
        weight_norm(module, "weight")
    value = module.weight.tolist()
    remove_weight_norm(module)
    assert list(module.state_dict()) == ["bias", "weight"]
    assert module.weight.tolist() == value
    with pytest.raises(ValueError, match="not normalised"):
        remove_weight_norm(module)


@pytest.mark.parametrize("older", [False, True])
def test_spectral_norm(rng, older):
    module = nn.ConvTranspose2d(4, 3, 2)
    matrix = module.weight.detach().numpy().transpose(1, 0, 2, 3).reshape(3, -1)
    largest = np.linalg.svd(matrix, compute_uv=False)[0]
    wanted = module.weight.detach().numpy() / largest
    if older:
        spectral_norm(module)
        names = ["bias", "weight_orig", "weight_u", "weight_v"]
    else:
        parametrizations.spectral_norm(module)
        names = ["bias", "parametrizations.weight.original"]
        names += [f"parametrizations.weight.0.{x}" for x in ("_u", "_v")]
    assert list(module.state_dict()) == names
    for _ in range(60):
        module(core.ones(1, 4, 2, 2))
    np.testing.assert_allclose(module.weight.detach().numpy(), wanted, rtol=1e-4, atol=1e-6)
    # In evaluation mode the estimate does not change.
    module.eval()
    state = {key: value.clone() for key, value in module.state_dict().items()}
    module(core.ones(1, 4, 2, 2))
    assert all(core.equal(value, state[key]) for key, value in module.state_dict().items())
    if older:
        remove_spectral_norm(module)
    else:
        parametrize.remove_parametrizations(module, "weight")
    assert list(module.state_dict()) == ["bias", "weight"]
    np.testing.assert_allclose(module.weight.detach().numpy(), wanted, rtol=1e-4, atol=1e-6)


def test_arguments_of_spectral_norm():
    for function in (spectral_norm, parametrizations.spectral_norm):
        with pytest.raises(ValueError, match="n_power_iterations"):
            function(layer(), n_power_iterations=0)
        with pytest.raises(ValueError, match="'none'"):
            function(layer(), "none")
    with pytest.raises(IndexError, match="got 2"):
        parametrizations.spectral_norm(layer(), dim=2)
    flat = parametrizations.spectral_norm(layer(), "bias")
    assert float(core.linalg.vector_norm(flat.bias)) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 3)])
@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivialized", [True, False])
def test_orthogonal(shape, how, trivialized):
    module = nn.Module()
    module.w = nn.Parameter(core.randn(shape, dtype=core.float64))
    parametrizations.orthogonal(module, "w", how, use_trivialization=trivialized)
    assert module.w.shape == shape

    def check():
        w = module.w.detach().numpy()
        w = w if shape[-2] >= shape[-1] else w.swapaxes(-1, -2)
        identity = np.broadcast_to(np.eye(w.shape[-1]), (*w.shape[:-2], w.shape[-1], w.shape[-1]))
        np.testing.assert_allclose(w.swapaxes(-1, -2) @ w, identity, atol=1e-10)

    check()
    start = module.w.detach().clone()
    with core.no_grad():
        original = module.parametrizations.w.original
        original.add_(0.1 * core.randn(original.shape, dtype=core.float64))
    check()
    assert not core.allclose(module.w, start)
    if trivialized or how == "householder":
        module.w = start
        np.testing.assert_allclose(module.w.detach().numpy(), start.numpy(), atol=1e-10)
    else:
        with pytest.raises(NotImplementedError, match="use_trivialization"):
            module.w = start


def test_orthogonal_of_complex_matrices_is_unitary():
    module = nn.Module()
    module.w = nn.Parameter(core.randn(3, 3, dtype=core.complex128))
    parametrizations.orthogonal(module, "w")
    w = module.w.detach().numpy()
    np.testing.assert_allclose(w.conj().T @ w, np.eye(3), atol=1e-10)
    other = nn.Module()
    other.w = nn.Parameter(core.randn(3, 3, dtype=core.complex128))
    with pytest.raises(ValueError, match="householder"):
        parametrizations.orthogonal(other, "w", "householder")


def test_arguments_of_orthogonal():
    with pytest.raises(ValueError, match="1 dimensions"):
        parametrizations.orthogonal(layer(), "bias")
    with pytest.raises(ValueError, match="needs one of matrix_exp"):
        parametrizations.orthogonal(layer(), orthogonal_map="qr")
    module = parametrizations.orthogonal(layer())
    with pytest.raises(ValueError, match=r"\(4, 4\)"):
        module.weight = core.eye(4)


def test_skip_init():
    module = skip_init(nn.Linear, 3, 4, bias=False)
    assert module.weight.shape == (4, 3)
    assert module.weight.device.type == "cpu"
    assert module.weight.requires_grad
    with pytest.raises(RuntimeError, match="has no argument 'device'"):
        skip_init(nn.ReLU)
    with pytest.raises(RuntimeError, match="class of modules"):
        skip_init(dict)


def test_removal_keeps_the_tensors_of_an_earlier_state_dict():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    state = layer.state_dict()
    original = state["parametrizations.weight.original"].clone()
    with core.no_grad():
        layer.weight = core.tensor([[1.0, 2.0], [2.0, 3.0]])
    assert core.equal(state["parametrizations.weight.original"], original)
    state = layer.state_dict()
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight[1, 0].item() == 2
    assert state["parametrizations.weight.original"][1, 0].item() == 0
