"""Operators that copy rows of a few bytes: flips, triangles, and reads at indices."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core

WIDTHS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 31, 33, 65, 130)
DTYPES = ("bool", "uint8", "int16", "float32", "float64", "complex128")


def numbered(dtype: str, *shape: int) -> core.Tensor:
    """Return a tensor whose elements differ, as far as the dtype permits."""
    numbers = np.arange(np.prod(shape)).reshape(shape) * 7 % 251
    return core.from_numpy((numbers % 3 == 0 if dtype == "bool" else numbers).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_flips(dtype: str, width: int) -> None:
    x = numbered(dtype, 4, 5, width)
    for dims in ((0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2)):
        np.testing.assert_array_equal(x.flip(dims).numpy(), np.flip(x.numpy(), dims))
        swapped = x.transpose(0, 1)
        np.testing.assert_array_equal(swapped.flip(dims).numpy(), np.flip(swapped.numpy(), dims))
        spread = core.stack([x, x], -1)[..., 0]
        np.testing.assert_array_equal(spread.flip(dims).numpy(), np.flip(x.numpy(), dims))
    tall = numbered(dtype, 300, width)
    np.testing.assert_array_equal(tall.flipud().numpy(), np.flipud(tall.numpy()))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_triangles(dtype: str, width: int) -> None:
    x = numbered(dtype, 3, 40, width)
    for diagonal in (-45, -39, -20, -1, 0, 1, width - 1, width + 3):
        for core_form, form in ((core.triu, np.triu), (core.tril, np.tril)):
            np.testing.assert_array_equal(core_form(x, diagonal).numpy(), form(x.numpy(), diagonal))
            again = x.clone()
            getattr(again, f"{form.__name__}_")(diagonal)
            np.testing.assert_array_equal(again.numpy(), form(x.numpy(), diagonal))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_reads_at_indices(dtype: str, width: int) -> None:
    random = np.random.default_rng(5)
    x = numbered(dtype, 3, 50, width)
    views = {"plain": x, "transposed": x.transpose(0, 1), "last first": x.transpose(0, 2), "some": x[:, ::2]}
    for view in views.values():
        array = view.numpy()
        for dim in range(3):
            index = random.integers(0, view.size(dim), 11)
            tensor = core.from_numpy(index)
            np.testing.assert_array_equal(view.index_select(dim, tensor).numpy(), array.take(index, dim))
            for count in (1, 2, 3, 40):
                shape = [count if d == dim else size for d, size in enumerate(array.shape)]
                index = random.integers(0, array.shape[dim], shape)
                got = view.gather(dim, core.from_numpy(index)).numpy()
                np.testing.assert_array_equal(got, np.take_along_axis(array, index, dim))


@pytest.mark.parametrize("width", [1, 2, 3, 200])
def test_indices_out_of_range(width: int) -> None:
    x = numbered("float32", 60, 4)
    for bad in (4, -1, 2**40):
        index = core.zeros(60, width, dtype=core.int64)
        index[57, width - 1] = bad
        with pytest.raises(RuntimeError, match=r"out of range|out of bounds"):
            x.gather(1, index)
        with pytest.raises(IndexError):
            x.index_select(1, core.tensor([0, 1, 2**40 if bad == -1 else bad]))
    with pytest.raises(IndexError):
        x[:, core.tensor([0, 1, 4])]
