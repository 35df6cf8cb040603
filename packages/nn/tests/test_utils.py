from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight_core as core
from rushlight_nn import Linear, Parameter, utils


def params(rng):
    result = [Parameter(core.zeros(s)) for s in ((3, 4), (5,), (2,))]
    for p in result[:2]:
        p.grad = core.from_numpy(rng.normal(size=tuple(p.shape)).astype(np.float32))
    return result


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_clip_grad_norm(rng, order, limit):
    ps = params(rng)
    grads = [p.grad.numpy().copy() for p in ps[:2]]
    norm = np.linalg.norm(np.concatenate([g.ravel() for g in grads]), order)
    total = utils.clip_grad_norm_(ps, limit, order)
    assert float(total) == pytest.approx(norm, rel=1e-5)
    factor = min(1.0, limit / norm)
    for p, g in zip(ps, grads, strict=False):
        np.testing.assert_allclose(p.grad.numpy(), g * factor, rtol=1e-5)
    assert ps[2].grad is None


def test_clip_grad_norm_of_nothing_and_of_infinity(rng):
    assert float(utils.clip_grad_norm_([Parameter(core.ones(1))], 1.0)) == 0.0
    p = Parameter(core.ones(2))
    p.grad = core.tensor([1.0, math.inf])
    with pytest.raises(RuntimeError, match="error_if_nonfinite=False"):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert p.grad.tolist() == [1.0, math.inf]
    assert math.isinf(float(utils.clip_grad_norm_(iter([p]), 1.0)))


def test_clip_grad_value(rng):
    ps = params(rng)
    grads = [p.grad.numpy().copy() for p in ps[:2]]
    utils.clip_grad_value_(ps, 0.3)
    for p, g in zip(ps, grads, strict=False):
        np.testing.assert_array_equal(p.grad.numpy(), g.clip(-np.float32(0.3), np.float32(0.3)))


def test_parameters_as_a_vector():
    layer = Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    expected = np.concatenate([p.detach().numpy().ravel() for p in layer.parameters()])
    np.testing.assert_array_equal(vector.detach().numpy(), expected)
    utils.vector_to_parameters(core.arange(9).float(), layer.parameters())
    assert layer.weight.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert layer.bias.tolist() == [6.0, 7.0, 8.0]
    with pytest.raises(ValueError, match="got 8 elements, needs 9"):
        utils.vector_to_parameters(core.zeros(8), layer.parameters())
    with pytest.raises(TypeError):
        utils.vector_to_parameters([1.0], layer.parameters())
