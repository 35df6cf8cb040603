"""Convolutions by minimal filtering (Winograd): errors are within the bound for all sizes, with any number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import rushlight_autograd  # noqa: F401
import rushlight_core as core
from rushlight_core import _C

BOUND = 1e-5  # error relative to the largest result, as documented in rushlight.backends.cpu

# batch, channels of input and output, height, width, padding
SIZES = [
    (2, 16, 16, 16, 16, 1),
    (2, 17, 19, 13, 27, 1),
    (3, 24, 16, 14, 14, 0),
    (2, 33, 50, 10, 30, 2),
    (9, 16, 16, 7, 7, 1),
    (1, 16, 40, 6, 90, (2, 0)),
    (4, 130, 64, 8, 15, 1),
    (1, 300, 24, 24, 31, (0, 1)),
    (2, 16, 520, 14, 14, 1),
    (1, 48, 48, 111, 4, 1),
    (16, 96, 30, 40, 57, 1),
]


@pytest.fixture(autouse=True)
def our_kernels() -> Iterator[None]:
    """Disable oneDNN, which has its own minimal filtering on some processors."""
    had = _C._has_onednn()
    _C._use_onednn(False)
    yield
    _C._use_onednn(had)
    _C._use_winograd(True)


def random(*shape: int, seed: int = 0) -> core.Tensor:
    return core.from_numpy(np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32))


def operands(size: tuple) -> tuple[core.Tensor, ...]:
    batch, inside, outside, height, width, padding = size
    down, across = (padding, padding) if isinstance(padding, int) else padding
    return (
        random(batch, inside, height, width),
        random(outside, inside, 3, 3),
        random(outside),
        random(batch, outside, height + 2 * down - 2, width + 2 * across - 2, seed=1),
    )


def results(size: tuple, *tensors: core.Tensor) -> list[np.ndarray]:
    """Return the convolution and its three gradients."""
    x, w, bias = (t.detach().requires_grad_() for t in tensors[:3])
    down, across = (size[5], size[5]) if isinstance(size[5], int) else size[5]
    y = core.conv2d(x, w, bias, padding=(down, across))
    y.backward(tensors[3])
    return [t.numpy() for t in (y.detach(), x.grad, w.grad, bias.grad)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_results_are_within_the_bound(size: tuple) -> None:
    tensors = operands(size)
    assert _C._winograd()
    found = results(size, *tensors)
    wanted = results(size, *(t.double() for t in tensors))
    _C._use_winograd(False)
    direct = results(size, *tensors)
    for ours, exact, plain in zip(found, wanted, direct, strict=True):
        assert ours.dtype == np.float32
        assert np.abs(ours - exact).max() <= BOUND * np.abs(exact).max()
        assert np.abs(plain - exact).max() <= BOUND * np.abs(exact).max()
    # The sums are rounded differently, which shows that another algorithm was used.
    assert any((ours != plain).any() for ours, plain in zip(found[:3], direct[:3], strict=True))


@pytest.mark.parametrize("size", [SIZES[1], SIZES[7], SIZES[8], SIZES[10]], ids=str)
def test_results_do_not_depend_on_the_number_of_threads(size: tuple) -> None:
    tensors = operands(size)
    before = core.get_num_threads()
    try:
        core.set_num_threads(1)
        alone = results(size, *tensors)
        for threads in (2, 3, 7):
            core.set_num_threads(threads)
            for a, b in zip(alone, results(size, *tensors), strict=True):
                assert (a == b).all()
    finally:
        core.set_num_threads(before)


def test_values_that_are_not_finite_stay_in_their_place() -> None:
    """The results of a tile share its input, so an infinite element affects at most four elements in each direction."""
    size = (1, 16, 16, 40, 40, 1)
    x, w, bias, gradient = operands(size)
    x[0, 3, 20, 20] = float("inf")
    y = results(size, x, w, bias, gradient)[0]
    outside = np.ones((40, 40), bool)
    outside[16:24, 16:24] = False
    assert not np.isfinite(y[0, :, 19:22, 19:22]).any()
    assert np.isfinite(y[0][:, outside]).all()


def test_operands_of_other_orders_in_memory() -> None:
    size = (2, 17, 19, 13, 27, 1)
    x, w, bias, gradient = operands(size)
    wanted = results(size, x, w, bias, gradient)
    last = core.channels_last
    found = results(size, x.to(memory_format=last), w.to(memory_format=last), bias, gradient)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=BOUND * np.abs(b).max())
    every_second = random(4, 17, 13, 27)[::2]
    y = core.conv2d(every_second, w, bias, padding=1)
    assert (y == core.conv2d(every_second.contiguous(), w, bias, padding=1)).all()
