"""Gradients of functions and layers, compared with the values of PyTorch 2.13 in the tests of rushlight-nn."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rushlight

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "nn" / "tests" / "reference"))
from reference_values import kept, library, wrong_in


@pytest.mark.parametrize("subject", ["functions", "layers"])
def test_gradients(subject: str) -> None:
    assert rushlight.ones(1, requires_grad=True).requires_grad
    ours = library("rushlight")
    assert ours.differentiates
    wrong = []
    for key, expected in kept(subject).items():
        wrong += wrong_in(ours, subject, key, expected)
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(wrong[:10])


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_windows_of_zeros_have_a_finite_tangent(p: float) -> None:
    functional = rushlight.nn.functional
    pools = {
        functional.lp_pool1d: (1, 4),
        functional.lp_pool2d: (1, 4, 4),
        functional.lp_pool3d: (1, 4, 4, 4),
    }
    for pool, shape in pools.items():
        x = rushlight.zeros(shape)
        x[..., 2:] = 1.0
        _, tangent = rushlight.func.jvp(lambda x, pool=pool: pool(x, p, 2), (x,), (rushlight.ones(shape),))
        assert rushlight.isfinite(tangent).all()
