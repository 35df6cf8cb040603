from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import rushlight_core as core
from rushlight_nn import Parameter, init


def fits(tensor, distribution):
    """Return whether the values may be from `distribution`, by a Kolmogorov-Smirnov test. Correct values fail the
    test for one seed in ten thousand; the seed is fixed."""
    return stats.kstest(tensor.detach().double().numpy().ravel(), distribution.cdf).pvalue > 1e-4


def uniform(bound):
    return stats.uniform(-bound, 2 * bound)


W = (40, 10, 3, 3)  # fan in 90, fan out 360


@pytest.mark.parametrize(
    ("fill", "distribution"),
    [
        (lambda t: init.uniform_(t, -1.0, 3.0), stats.uniform(-1, 4)),
        (lambda t: init.normal_(t, 2.0, 0.5), stats.norm(2, 0.5)),
        (lambda t: init.trunc_normal_(t, 1.0, 2.0, -1.0, 2.0), stats.truncnorm(-1, 0.5, 1, 2)),
        (lambda t: init.xavier_uniform_(t, 2.0), uniform(2 * math.sqrt(6 / 450))),
        (lambda t: init.xavier_normal_(t), stats.norm(0, math.sqrt(2 / 450))),
        (lambda t: init.kaiming_uniform_(t, 1.0), uniform(math.sqrt(3 / 90))),
        (
            lambda t: init.kaiming_uniform_(t, nonlinearity="relu", mode="fan_out"),
            uniform(math.sqrt(6 / 360)),
        ),
        (lambda t: init.kaiming_normal_(t, nonlinearity="tanh"), stats.norm(0, 5 / 3 / math.sqrt(90))),
    ],
)
def test_distributions(fill, distribution):
    tensor = Parameter(core.empty(W))
    assert fill(tensor) is tensor
    assert tensor.requires_grad
    assert tensor.is_leaf
    assert fits(tensor, distribution)


@pytest.mark.parametrize(
    "fill", [init.uniform_, init.normal_, init.trunc_normal_, init.xavier_uniform_, init.kaiming_normal_]
)
def test_generators(fill):
    first, second = (fill(core.empty(5, 5), generator=core.Generator().manual_seed(3)) for _ in range(2))
    assert core.equal(first, second)
    assert not core.equal(first, fill(core.empty(5, 5), generator=core.Generator().manual_seed(4)))


def test_constants():
    assert init.constant_(core.empty(2, 2), 3.5).tolist() == [[3.5, 3.5], [3.5, 3.5]]
    assert init.ones_(core.empty(2)).tolist() == [1.0, 1.0]
    assert init.zeros_(core.empty(2)).tolist() == [0.0, 0.0]
    assert init.eye_(core.empty(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize("groups", [1, 2])
def test_dirac_passes_channels_on(groups):
    weight = init.dirac_(core.empty(4, 4 // groups, 3, 3), groups)
    x = core.randn(1, 4, 5, 5)
    assert core.allclose(core.conv2d(x, weight, None, 1, 1, 1, groups), x, atol=1e-6)


def test_sparse():
    tensor = init.sparse_(core.empty(20, 8), 0.3, std=2.0)
    assert ((tensor.numpy() == 0).sum(0) == 6).all()
    assert 1.0 < tensor.numpy()[tensor.numpy() != 0].std() < 3.0


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 2, 2), (70, 70), (1, 1)])
def test_orthogonal(shape):
    matrix = init.orthogonal_(core.empty(shape), gain=2.0).numpy().reshape(shape[0], -1)
    smaller = matrix @ matrix.T if shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(smaller, 4 * np.eye(len(smaller)), atol=1e-5)


def test_orthogonal_matrices_of_either_sign():
    signs = {float(init.orthogonal_(core.empty(1, 1))) for _ in range(40)}
    assert signs == {-1.0, 1.0}


def test_gains():
    assert (
        init.calculate_gain("linear") == init.calculate_gain("conv2d") == init.calculate_gain("sigmoid") == 1
    )
    assert init.calculate_gain("tanh") == pytest.approx(5 / 3)
    assert init.calculate_gain("relu") == pytest.approx(math.sqrt(2))
    assert init.calculate_gain("leaky_relu") == pytest.approx(math.sqrt(2 / 1.0001))
    assert init.calculate_gain("leaky_relu", 1) == 1
    with pytest.raises(ValueError, match="'swish'"):
        init.calculate_gain("swish")
    with pytest.raises(ValueError, match="negative slope"):
        init.calculate_gain("leaky_relu", "steep")


def test_refusals():
    for call in (
        lambda: init.xavier_uniform_(core.empty(3)),
        lambda: init.kaiming_normal_(core.empty(3, 3), mode="fan"),
        lambda: init.eye_(core.empty(3)),
        lambda: init.dirac_(core.empty(3, 3)),
        lambda: init.dirac_(core.empty(3, 3, 3), 2),
        lambda: init.sparse_(core.empty(3), 0.1),
        lambda: init.trunc_normal_(core.empty(3), a=1.0, b=-1.0),
    ):
        with pytest.raises(ValueError, match=r"^\w+_\("):
            call()


def test_empty_tensors():
    with pytest.warns(UserWarning, match="no elements"):
        init.kaiming_uniform_(core.empty(0, 3))
    assert init.xavier_normal_(core.empty(0, 3)).numel() == 0
