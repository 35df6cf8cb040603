"""Elements that a mask selects, for elements of every size, and for masks that are not multiples of a machine word."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core

DTYPES = [
    core.bool,
    core.uint8,
    core.int16,
    core.float16,
    core.float32,
    core.int64,
    core.float64,
    core.complex64,
    core.complex128,
]


def masks(n: int) -> list[core.Tensor]:
    probabilities = core.rand(n)
    return [probabilities < share for share in (0, 0.02, 0.5, 2)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000, 40_000])
def test_of_every_size(dtype: core.dtype, n: int) -> None:
    core.manual_seed(0)
    x, source = core.randint(0, 2, (n,)).to(dtype), core.randint(0, 2, (n,)).to(dtype)
    for mask in masks(n):
        m = mask.numpy()
        assert x[mask].numpy().tolist() == x.numpy()[m].tolist()
        wanted = x.numpy().copy()
        wanted[m] = source.numpy()[: m.sum()]
        strided = core.stack([x, x], 1)[:, 0]
        for t in (x.clone(), strided):
            assert t.masked_scatter_(mask, source).numpy().tolist() == wanted.tolist()
        zeroed = core.where(mask, core.ones_like(x), core.zeros_like(x))
        np.testing.assert_array_equal(zeroed.nonzero().numpy(), np.argwhere(m))


@pytest.mark.parametrize("shape", [(130, 70), (9, 3, 700), (3, 5, 2, 90), (70, 1), (1, 70, 3), (20_000, 2)])
def test_coordinates(shape: tuple[int, ...]) -> None:
    core.manual_seed(0)
    mask = core.rand(shape) < 0.3
    np.testing.assert_array_equal(mask.nonzero().numpy(), np.argwhere(mask.numpy()))
    transposed = mask.transpose(0, 1)
    np.testing.assert_array_equal(transposed.nonzero().numpy(), np.argwhere(transposed.numpy()))
    assert [t.tolist() for t in mask.nonzero(as_tuple=True)] == [i.tolist() for i in np.nonzero(mask.numpy())]


def test_the_indices_of_a_dimension_are_contiguous() -> None:
    mask = core.tensor([[True, False], [True, True]])
    assert mask.nonzero().stride() == (1, 3)
    assert all(index.is_contiguous() for index in mask.nonzero(as_tuple=True))
    assert core.nonzero_static(mask, size=5).is_contiguous()


def test_a_negative_zero_is_zero_and_nan_is_not() -> None:
    for dtype in (core.float16, core.bfloat16, core.float32, core.float64, core.complex64, core.complex128):
        x = core.tensor([-0.0, 0.0, float("nan"), 1e-7], dtype=dtype)
        assert x.nonzero().flatten().tolist() == [2, 3]


def test_threads_change_nothing() -> None:
    core.manual_seed(0)
    x = core.randn(300_000)
    mask, before, results = x > 0.5, core.get_num_threads(), []
    try:
        for threads in (1, 3):
            core.set_num_threads(threads)
            written = core.zeros(300_000).masked_scatter_(mask, x)
            results.append((x[mask], mask.nonzero(), written))
    finally:
        core.set_num_threads(before)
    assert all(core.equal(a, b) for a, b in zip(*results, strict=True))


def test_the_shape_alone_is_not_enough() -> None:
    x = core.empty(3, device="meta")
    for call in (lambda: x.nonzero(), lambda: x[x > 0], lambda: core.bincount(x.to(core.int64))):
        with pytest.raises(NotImplementedError, match="depends on values"):
            call()
