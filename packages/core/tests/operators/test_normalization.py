"""Normalisation: properties that samples cannot show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rushlight_core as core


@pytest.mark.parametrize("size", [1, 3, 8, 33])
@pytest.mark.parametrize("dtype", [core.float32, core.float64])
def test_constant_lines_become_the_bias(size: int, dtype: core.dtype) -> None:
    """The result is exactly the bias, although each row is divided by the small number sqrt(eps)."""
    lines = core.tensor([0.3, 5.3171, -7.75, 1.0], dtype=dtype).unsqueeze(1).expand(4, size)
    lines = lines if size == 1 else (lines * 4).round()  # integers, so that the mean is exact
    weight, bias = core.full((size,), 2.0, dtype=dtype), core.arange(float(size), dtype=dtype)
    assert core.equal(core.layer_norm(lines, (size,), weight, bias), bias.expand(4, size))
    assert not core.layer_norm(lines, (size,)).any()


def test_root_mean_square_of_complex_numbers() -> None:
    """As in PyTorch, x * x is averaged, not the square of the absolute value."""
    x = core.tensor([3 + 4j, 1 - 2j])
    expected = x / ((x * x).mean() + 0.5).sqrt()
    assert core.allclose(core.rms_norm(x, (2,), None, 0.5), expected)
    with pytest.raises(RuntimeError, match="normalized_shape"):
        core.rms_norm(x, (3,))


@pytest.mark.parametrize("training", [False, True])
def test_native_batch_norm_changes_running_statistics(training: bool) -> None:
    """native_batch_norm updates the running statistics like batch_norm, and gives the same result."""
    x = core.arange(24.0).view(2, 3, 4)
    ours, others = ([core.ones(3), core.full((3,), 2.0)] for _ in range(2))
    result, mean, rstd = core.native_batch_norm(x, None, None, *ours, training, 0.1, 1e-5)
    wanted = core.batch_norm(x, None, None, *others, training, 0.1, 1e-5)
    assert core.equal(result, wanted)
    assert all(core.equal(a, b) for a, b in zip(ours, others, strict=True))
    assert mean.shape == rstd.shape == ((3,) if training else (0,))


@pytest.mark.parametrize("dtype", [core.float32, core.float64])
def test_running_statistics_may_lie_apart(dtype) -> None:
    x = core.randn(4, 3, 5, dtype=dtype)
    mean, var = core.zeros(3, dtype=dtype), core.ones(3, dtype=dtype)
    core.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False)
    apart_mean, apart_var = core.full((6,), 7.0, dtype=dtype), core.full((6,), 7.0, dtype=dtype)
    apart_mean[::2], apart_var[::2] = 0.0, 1.0
    core.batch_norm(x, None, None, apart_mean[::2], apart_var[::2], True, 0.1, 1e-5, False)
    assert core.equal(apart_mean[::2], mean)
    assert core.equal(apart_var[::2], var)
    assert apart_mean[1::2].tolist() == apart_var[1::2].tolist() == [7.0] * 3


@pytest.mark.parametrize("shape", [(3, 2, 5000), (40, 2), (2, 2, 70, 90)])
def test_the_variance_beside_a_large_mean(shape) -> None:
    n = core.Size(shape).numel()
    x = (core.arange(n) % 7).reshape(shape).to(core.float32) + 1e6
    mean, var = core.zeros(2), core.zeros(2)
    core.batch_norm(x, None, None, mean, var, True, 1.0, 1e-5, False)
    rows = x.to(core.float64).transpose(0, 1).reshape(2, -1)
    np.testing.assert_allclose(var.numpy(), rows.var(1).numpy(), rtol=1e-5)
    np.testing.assert_allclose(mean.numpy(), rows.mean(1).numpy(), rtol=1e-7)


def test_groups_of_one_element_become_the_bias() -> None:
    """The result is exactly the bias, even if the element is large compared with sqrt(eps)."""
    x = core.tensor([1e30, -1e30, -3e20, 1e10]).reshape(2, 2, 1)
    assert not core.group_norm(x, 2).any()
    assert core.group_norm(x, 2, bias=core.tensor([2.0, -1.0])).flatten().tolist() == [2, -1, 2, -1]


@pytest.mark.parametrize("dtype", [core.float16, core.bfloat16])
def test_lengths_beyond_half_precision(dtype: core.dtype) -> None:
    """renorm is correct if squares overflow in half precision, even if the norm itself overflows."""
    x = core.tensor([[3e4, 4e4], [6e4, 0.0]], dtype=dtype)
    assert np.allclose(core.renorm(x, 2, 0, 1.0).float().numpy(), [[0.6, 0.8], [1.0, 0.0]], atol=1e-2)
    assert np.allclose(core.renorm(x, 1, 0, 7.0).float().numpy(), [[3.0, 4.0], [7.0, 0.0]], atol=5e-2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: core.layer_norm(x, x.shape[1:]),
        lambda x: core.rms_norm(x, x.shape[1:]),
        lambda x: core.group_norm(x.unsqueeze(1), 1),
        lambda x: core.batch_norm(x.T, None, None, None, None, True, 0.1, 1e-5),
        lambda x: core.softmax(x, 1) * x.shape[1],
        lambda x: core.logsumexp(x, 1),
        lambda x: core.mean(x, 1),
        lambda x: core.var(x, 1),
        lambda x: core.std(x, 1),
        lambda x: core.linalg_vector_norm(x, 2, 1),
        lambda x: core.adaptive_avg_pool1d(x.unsqueeze(1), 1),
    ],
    ids=["layer", "rms", "group", "batch", "softmax", "logsumexp", "mean", "var", "std", "norm", "pool"],
)
def test_the_error_of_long_rows_is_that_of_short_ones(function: Callable[[core.Tensor], core.Tensor]) -> None:
    """Sums of long rows are added in blocks, so that rounding errors do not grow with the length."""
    x = core.from_numpy(np.random.default_rng(0).random((2, 3_000_001), dtype=np.float32))
    exact = function(x.double())
    assert (function(x) - exact).abs().max() < 2e-6 * exact.abs().max()
