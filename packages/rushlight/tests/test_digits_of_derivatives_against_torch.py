"""Law: derivatives in float32 are about as near to float64's as PyTorch's, for matrices that are nearly singular, too.

Each function is differentiated once and twice in reverse, and once forward. The errors are relative to the largest element,
and their ratio to PyTorch's is the geometric mean over 24 matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

MOST = 3.0  # times PyTorch's error
# Larger bounds for functions whose tangents subtract a rounded mean from numbers that are far from zero.
BOUNDS = {"batch_norm": 5.0, "layer_norm": 5.0}
ROUNDING = 1e-7  # errors of this size are those of the last digit
SAMPLES = 4  # matrices of each kind

# Functions of a library and of one 4 x 4 matrix.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "cholesky": lambda lib, x: lib.linalg.cholesky(x @ x.mT),
    "cholesky_inverse": lambda lib, x: lib.cholesky_inverse(lib.linalg.cholesky(x @ x.mT)),
    "cond": lambda lib, x: lib.linalg.cond(x),
    "det": lambda lib, x: lib.linalg.det(x),
    "eigh": lambda lib, x: tuple(part.abs() for part in lib.linalg.eigh(x + x.mT)),
    "eigvals": lambda lib, x: lib.linalg.eigvals(x).abs(),
    "eigvalsh": lambda lib, x: lib.linalg.eigvalsh(x + x.mT),
    "householder_product": lambda lib, x: lib.linalg.householder_product(x.tril(-1), lib.sigmoid(x[0])),
    "inv": lambda lib, x: lib.linalg.inv(x),
    "lstsq": lambda lib, x: lib.linalg.lstsq(x[:, :3], x[:, 3:] * 2)[0],
    "lu": lambda lib, x: tuple(lib.linalg.lu(x))[1:],
    "matrix_exp": lambda lib, x: lib.linalg.matrix_exp(x),
    "matrix_power of -2": lambda lib, x: lib.linalg.matrix_power(x, -2),
    "norm, nuclear": lambda lib, x: lib.linalg.norm(x, "nuc"),
    "norm, spectral": lambda lib, x: lib.linalg.norm(x, 2),
    "pinv": lambda lib, x: lib.linalg.pinv(x),
    "pinv, wide": lambda lib, x: lib.linalg.pinv(x[:3]),
    "qr": lambda lib, x: tuple(lib.linalg.qr(x)),
    "qr, tall": lambda lib, x: tuple(lib.linalg.qr(x[:, :3])),
    "qr, wide": lambda lib, x: tuple(lib.linalg.qr(lib.cat([x, 1 - x[:, :2]], 1))),
    "slogdet": lambda lib, x: lib.linalg.slogdet(x)[1],
    "solve": lambda lib, x: lib.linalg.solve(x, x[:, :2] * 2 + 1),
    "solve, from the right": lambda lib, x: lib.linalg.solve(x, x * 2 + 1, left=False),
    "solve_triangular": lambda lib, x: lib.linalg.solve_triangular(x.triu(), x, upper=True),
    "svd": lambda lib, x: tuple(part.abs() for part in lib.linalg.svd(x)),
    "svdvals": lambda lib, x: lib.linalg.svdvals(x),
    "batch_norm": lambda lib, x: lib.nn.functional.batch_norm(x + 10, None, None, training=True),
    "corrcoef": lambda lib, x: lib.corrcoef(x),
    "cosine_similarity": lambda lib, x: lib.nn.functional.cosine_similarity(x, x * 1.001 + 0.01),
    "cumprod": lambda lib, x: x.cumprod(-1),
    "hypot": lambda lib, x: lib.hypot(x, x.mT),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x + 10, (4,)),
    "log_softmax": lambda lib, x: lib.log_softmax(x * 30, -1),
    "logcumsumexp": lambda lib, x: (x * 20).logcumsumexp(-1),
    "logsumexp": lambda lib, x: lib.logsumexp(x * 30, -1),
    "norm of order 3": lambda lib, x: lib.norm(x, 3),
    "prod": lambda lib, x: x.prod(-1),
    "renorm": lambda lib, x: x.renorm(2, 0, 0.5),
    "rms_norm": lambda lib, x: lib.nn.functional.rms_norm(x, (4,)),
    "scaled_dot_product_attention": lambda lib, x: lib.nn.functional.scaled_dot_product_attention(x * 8, x, x),
    "softmax": lambda lib, x: lib.softmax(x * 30, -1),
    "std": lambda lib, x: (x + 10).std(-1),
    "var": lambda lib, x: (x + 10).var(-1),
}  # fmt: skip


def matrices() -> Iterator[np.ndarray]:
    """Yield matrices: random, with nearly dependent rows or columns, with graded rows or columns, and near the identity."""
    rng = np.random.default_rng(1)
    scale = 10.0 ** np.arange(-2, 2)
    for _ in range(SAMPLES):
        a = rng.standard_normal((4, 4))
        rows, columns = a.copy(), a.copy()
        rows[-1] = rows[:-1].sum(0) * 0.5 + 1e-2 * rng.standard_normal(4)
        columns[:, -1] = columns[:, :-1].sum(1) * 0.5 + 1e-2 * rng.standard_normal(4)
        for one in (a, rows, columns, a * scale[:, None], a * scale, np.eye(4) + 1e-3 * a):
            yield one.astype(np.float32)


def weighted(lib: Any, t: Any) -> Any:
    return (t * lib.cos(lib.arange(1.0, t.numel() + 1.0)).reshape(t.shape).to(t.dtype)).sum()


def derivatives(lib: Any, function: Callable[[Any, Any], Any], x: np.ndarray) -> list[np.ndarray]:
    """Return the gradient, the gradient of a sum of it, and the tangent, one after the other."""

    def results(t: Any) -> tuple[Any, ...]:
        found = function(lib, t)
        return found if isinstance(found, tuple) else (found,)

    t = lib.tensor(x).requires_grad_()
    (first,) = lib.autograd.grad(sum(weighted(lib, r) for r in results(t)), t, create_graph=True)
    found = [first]
    if first.requires_grad:
        found += [g for g in lib.autograd.grad(weighted(lib, first), t, allow_unused=True) if g is not None]
    tangents = lib.func.jvp(results, (t.detach(),), (lib.cos(t.detach() * 9),))[1]
    found.append(lib.cat([v.reshape(-1) for v in tangents]))
    return [v.detach().numpy().astype(np.float64) for v in found]


def errors(lib: Any, function: Callable[[Any, Any], Any], x: np.ndarray) -> list[float]:
    pairs = zip(derivatives(lib, function, x), derivatives(lib, function, x.astype(np.float64)), strict=True)
    return [float(abs(a - b).max() / (abs(b).max() + 1e-30)) for a, b in pairs]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_about_those_of_pytorch(name: str) -> None:
    ratios = []
    for x in matrices():
        ours, theirs = (np.array(errors(lib, FUNCTIONS[name], x)) for lib in (rushlight, torch))
        assert ours.shape == theirs.shape
        ratios.append(np.log(ours + ROUNDING) - np.log(theirs + ROUNDING))
    # Where PyTorch's derivative is not finite, there is nothing to compare.
    means = np.exp(np.nanmean(np.where(np.isfinite(ratios), ratios, np.nan), axis=0))
    assert (means < BOUNDS.get(name, MOST)).all(), f"{name}: {means} times PyTorch's errors"
