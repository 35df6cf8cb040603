"""`rushlight.linalg`: what samples cannot show."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import rushlight_core as rl


def test_names_of_arguments() -> None:
    """PyTorch's documented names, and those that its operators have had."""
    a = rl.randn(3, 3)
    assert rl.equal(rl.linalg.norm(A=a), rl.linalg.norm(input=a))
    assert rl.equal(rl.linalg.vector_norm(x=a, ord=1), rl.linalg.vector_norm(a, 1))
    assert rl.equal(rl.linalg.matrix_power(A=a, n=2), rl.matrix_power(a, 2))
    assert rl.linalg.diagonal(a).data_ptr() == a.data_ptr()
    out = rl.empty(0)
    assert rl.linalg.matrix_norm(a, "fro", out=out) is out


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 300.0])
def test_matrix_exp_of_any_norm(scale: float) -> None:
    """Antisymmetric matrices have orthogonal exponentials, however large they are."""
    a = rl.randn(4, 5, 5, dtype=rl.float64) * scale
    a = a - a.mT
    q = rl.linalg.matrix_exp(a)
    assert rl.allclose(q @ q.mT, rl.eye(5, dtype=rl.float64).expand(4, 5, 5), atol=1e-10)
    wanted = np.stack([scipy.linalg.expm(one) for one in a.numpy()])
    np.testing.assert_allclose(q.numpy(), wanted, rtol=0, atol=1e-9)


def test_matrix_exp_scales_each_matrix_by_itself() -> None:
    """A large neighbour in the batch changes no bit; what is not finite stays so, alone."""
    small = rl.randn(3, 3)
    alone = rl.matrix_exp(small)
    both = rl.matrix_exp(rl.stack([small, small * 100, rl.full((3, 3), float("nan"))]))
    assert rl.equal(both[0], alone)
    assert bool(rl.isnan(both[2]).all())
    assert rl.equal(rl.matrix_exp(rl.zeros(2, 2)), rl.eye(2))


def test_products_in_the_best_order() -> None:
    """From left to right, the first product would have 10^12 elements."""
    column, row = rl.ones(10**6, 1), rl.ones(1, 10**6)
    assert rl.chain_matmul(row, column, row, column).item() == pytest.approx(1e12)


def test_what_needs_a_decomposition_says_so() -> None:
    """A typed error, not a wrong number."""
    a = rl.randn(3, 3)
    for call in (
        lambda: rl.linalg.matrix_norm(a, 2),
        lambda: rl.linalg.matrix_norm(a, "nuc"),
        lambda: rl.linalg.matrix_power(a, -1),
    ):
        with pytest.raises(NotImplementedError, match="not there yet"):
            call()
