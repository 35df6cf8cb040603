"""Reductions that are too large for samples: they are split into the same chunks for any number of threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core import Tensor

SHAPES = [
    ((400_000,), None),
    ((3, 150_000), 1),
    ((150_000, 3), 0),
    ((150_000, 3), 1),
    ((40, 100, 100), (0, 2)),
]


def numbers(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return a tensor and an array of the same values, which look random."""
    count = int(np.prod(shape))
    array = np.sin(np.arange(count) * 1.7).astype(np.float32).reshape(shape)
    return core.from_numpy(array), array.astype(np.float64)


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_large_reductions(shape: tuple[int, ...], dim: Any) -> None:
    tensor, array = numbers(shape)
    arguments = () if dim is None else (dim,)
    for name, function in (("sum", np.sum), ("mean", np.mean), ("amax", np.max), ("var", np.var)):
        more = {"correction": 0} if name == "var" else {}
        got = getattr(core, name)(tensor, *arguments, **more).numpy()
        np.testing.assert_allclose(
            got, function(array, axis=dim), rtol=1e-6, atol=1e-4 if name == "sum" else 1e-7
        )
    if not isinstance(dim, tuple):
        assert np.array_equal(core.argmax(tensor, *arguments).numpy(), np.argmax(array, axis=dim))


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_results_do_not_depend_on_the_number_of_threads(shape: tuple[int, ...], dim: Any) -> None:
    tensor, _ = numbers(shape)
    arguments = () if dim is None else (dim,)
    threads = core.get_num_threads()
    try:
        core.set_num_threads(2)
        two = [core.sum(tensor, *arguments), core.var(tensor, *arguments)]
        core.set_num_threads(1)
        one = [core.sum(tensor, *arguments), core.var(tensor, *arguments)]
    finally:
        core.set_num_threads(threads)
    assert all(core.equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_nan_anywhere_is_found() -> None:
    tensor, _ = numbers((200_000,))
    tensor = tensor.clone()
    tensor[123_457] = float("nan")
    assert np.isnan(tensor.max().item())
    assert tensor.argmax().item() == tensor.argmin().item() == 123_457


def test_the_covariance_of_integers_has_the_dtype_of_the_weights() -> None:
    x = core.tensor([[1, 2, 4], [3, 1, 0]])
    assert core.cov(x).dtype == core.float32
    for dtype in (core.float16, core.bfloat16, core.float32, core.float64):
        weights = core.tensor([0.5, 1.0, 1.5], dtype=dtype)
        found = core.cov(x, aweights=weights)
        assert found.dtype == dtype
        expected = np.cov([[1, 2, 4], [3, 1, 0]], aweights=[0.5, 1.0, 1.5])
        np.testing.assert_allclose(found.to(core.float64).numpy(), expected, rtol=2e-2)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
)
def test_integers_of_one_width_are_told_apart(dtype: str) -> None:
    """Signed and unsigned integers, and bools and bytes, give different results although some of their loops are shared."""
    if dtype == "bool":
        few = np.array([False, True, True])
    else:
        ends = np.iinfo(dtype)
        few = np.array([ends.min, ends.max, 0, 1, ends.max], dtype=dtype)
    for size in (1, 5, 77, 300, 5000):
        array = np.resize(few, size)
        tensor, wide = core.tensor(array), [int(x) for x in array]
        for name, wanted in (
            ("sum", sum(wide)),
            ("nansum", sum(wide)),
            ("prod", math.prod(wide)),
            ("any", any(wide)),
            ("all", all(wide)),
            ("count_nonzero", sum(map(bool, wide))),
            ("amax", max(wide)),
            ("amin", min(wide)),
        ):
            got = getattr(core, name)(tensor).item()
            assert (int(got) - int(wanted)) % 2**64 == 0, f"{name} of {size} {dtype}: {got}, not {wanted}"


@pytest.mark.parametrize("p", [1, 2, 3.5, math.inf, -math.inf])
def test_the_norm_of_one_number_is_its_absolute_value(p: float) -> None:
    parts = [0.0, 1.5, -2.0, math.inf, -math.inf, math.nan]
    for dtype in (core.complex64, core.complex128):
        numbers = core.tensor([complex(a, b) for a in parts for b in parts], dtype=dtype)
        got = core.linalg.vector_norm(numbers.unsqueeze(1), p, 1)
        assert core.allclose(got, numbers.abs(), equal_nan=True)
    numbers = core.tensor([0.0, 2.5e33, -1e-33, 5e-324, math.inf, math.nan])  # powers overflow and underflow
    for made in (core.linalg.vector_norm(numbers.unsqueeze(1), p, 1), core.norm(numbers.unsqueeze(0), p, 0)):
        np.testing.assert_array_equal(made.numpy(), numbers.abs().numpy())


def test_renorm_of_slices_with_one_large_element() -> None:
    got = core.renorm(core.tensor([[2.5e33], [0.5], [-3e20]]), 3, 0, 1)
    np.testing.assert_allclose(got.numpy(), [[1.0], [0.5], [-1.0]], rtol=1e-6)


@pytest.mark.parametrize("p", [1, 3, math.inf, -math.inf])
def test_norms_convert_integers_before_they_take_magnitudes(p: float) -> None:
    smallest = core.tensor([[-128, -128]], dtype=core.int8)
    got = core.norm(smallest, p, 0, dtype=core.float64)
    np.testing.assert_allclose(got.numpy(), [128.0, 128.0], rtol=1e-6)


@pytest.mark.parametrize("p", [0, 1, 2, 3, math.inf])
def test_norms_of_complex_numbers_have_no_real_dtype(p: float) -> None:
    with pytest.raises(
        RuntimeError, match=r"norm\(dtype\): must be complex for a complex input, got float32"
    ):
        core.norm(core.ones(2, dtype=core.complex64), p, dtype=core.float32)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in ("sum", "mean", "prod", "amax", "amin", "count_nonzero", "norm")
        for dtype in ("float32", "float64", "int32", "int64", "uint32", "uint64")
        if "float" in dtype or name not in ("mean", "norm")
    ],
)
def test_rows_of_any_length_are_reduced_as_one_row(name: str, dtype: str) -> None:
    """Several rows are reduced together in vectors; the bits must be those of a row alone and of a strided row."""
    reduce = {"norm": lambda t: core.linalg.vector_norm(t, dim=-1)}.get(
        name, lambda t: getattr(core, name)(t, -1)
    )
    functions = {"norm": np.linalg.norm, "amax": np.max, "amin": np.min}
    function = functions.get(name) or getattr(np, name)
    random = np.random.default_rng(4)
    for n in (*range(1, 41), 47, 63, 64, 65, 71, 72, 88, 95, 96, 104, 127, 128, 129, 200, 2047, 2048, 2049):
        array = random.integers(0, 5, (19, n)) if "int" in dtype else random.normal(size=(19, n)) * 1.5
        array = array.astype(dtype)
        if "float" in dtype:
            array[3, n // 2], array[4, n - 1], array[5, 0], array[6] = np.nan, np.inf, -np.inf, -0.0
        tensor = core.from_numpy(array)
        got = reduce(tensor).numpy()
        strided = core.zeros(19, 2 * n, dtype=tensor.dtype)
        strided[:, ::2] = tensor
        for other in (
            reduce(strided[:, ::2]),
            reduce(strided[:, ::2].contiguous()[2:]),
            core.stack([reduce(row) for row in tensor]),
        ):
            assert got[19 - len(other) :].tobytes() == other.numpy().tobytes(), n
        wide = array.astype(np.float64) if "float" in dtype else array.astype(np.int64)
        with np.errstate(all="ignore"):
            expected = function(wide, axis=1).astype(got.dtype)
        np.testing.assert_allclose(got, expected, rtol=1e-6 if dtype == "float32" else 1e-12, atol=1e-12)


def views(array: np.ndarray) -> list[tuple[Tensor, np.ndarray]]:
    """Return views with equal elements and different strides, each with an array of the same values."""
    tensor = core.from_numpy(array)
    pairs = [(tensor[:, ::step], array[:, ::step]) for step in (2, 3, 5)]
    pairs += [(tensor[::2, ::2], array[::2, ::2]), (tensor[::3], array[::3])]
    pairs += [(view.t(), same.T) for view, same in pairs]
    return [*pairs, (tensor[:, :1].expand(-1, 7), np.repeat(array[:, :1], 7, 1))]


@pytest.mark.parametrize("shape", [(1, 9), (5, 7), (37, 3), (3, 701), (700, 20), (9, 9001), (9001, 13)])
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64", "complex128"]
)
def test_elements_with_gaps_between_them(dtype: str, shape: tuple[int, ...]) -> None:
    array = (np.arange(shape[0] * shape[1]) * 7 % 5).astype(dtype).reshape(shape)  # sums are exact
    for tensor, values in views(array):
        for dim in (None, 0, 1):
            at = {} if dim is None else {"dim": dim}
            names = {"sum": np.sum, "any": np.any, "all": np.all, "count_nonzero": np.count_nonzero}
            if not dtype.startswith("complex"):
                names |= {"amax": np.max, "amin": np.min, "argmax": np.argmax}
            for name, function in names.items():
                given = tensor.to(core.uint8) if name == "argmax" and dtype == "bool" else tensor
                with np.errstate(over="ignore"):
                    expected = function(values, axis=dim)
                    if name == "sum" and dtype == "float16":
                        expected = values.astype(np.float64).sum(dim).astype(dtype)
                assert np.array_equal(getattr(core, name)(given, **at).numpy(), expected), (name, dim)
            if dtype.startswith("complex") or dtype == "float64":
                got = core.linalg.vector_norm(tensor, dim=dim).numpy()
                np.testing.assert_allclose(got, np.sqrt((np.abs(values) ** 2).sum(dim)), rtol=1e-6)


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7, 31, 33, 100, 3000])
def test_windows_that_overlap(length: int, step: int) -> None:
    array = (np.arange(4001) * 37 % 101).astype(np.float32)
    array[1234] = np.nan
    expected = np.lib.stride_tricks.sliding_window_view(array, length)[::step]
    windows = core.from_numpy(array).unfold(0, length, step)
    assert np.array_equal(windows.sum(-1).numpy(), expected.sum(-1), equal_nan=True)
    assert np.array_equal(windows.amax(-1).numpy(), expected.max(-1), equal_nan=True)
    assert np.array_equal(windows.argmax(-1).numpy(), expected.argmax(-1))
    assert np.array_equal(core.nansum(windows, -1).numpy(), np.nansum(expected, -1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_nan_counts_as_zero_in_rows_and_columns(dtype: str) -> None:
    for shape in [(3, 5), (5, 40), (70, 33), (2, 5000)]:
        array = (np.arange(shape[0] * shape[1]) % 7).astype(dtype).reshape(shape)
        array[0, 1] = array[-1, -1] = np.nan
        for dim in (0, 1):
            assert np.array_equal(core.nansum(core.from_numpy(array), dim).numpy(), np.nansum(array, dim))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("length", [*range(1, 20), 33, 64, 2047, 2048, 2049, 5000])
def test_sums_of_complex_rows(dtype: str, length: int) -> None:
    array = (
        ((np.arange(3 * length) % 11 - 5) + 1j * (np.arange(3 * length) % 13))
        .astype(dtype)
        .reshape(3, length)
    )
    array[1, length // 2] = complex(np.inf, 1)
    array[2, length - 1] = complex(1, np.nan)
    assert np.array_equal(core.sum(core.from_numpy(array), 1).numpy(), array.sum(1), equal_nan=True)


@pytest.mark.parametrize("length", [1, 5, 16, 31, 32, 33, 100, 3000])
def test_norms_of_rows(length: int) -> None:
    for dtype in ("float32", "float64"):
        array = np.sin(np.arange(9 * length) * 1.7).astype(dtype).reshape(9, length)
        array[3, length // 2] = np.nan
        array[5, -1] = -np.inf
        got = core.linalg.vector_norm(core.from_numpy(array), dim=1).numpy()
        expected = np.linalg.norm(array.astype(np.float64), axis=1)
        np.testing.assert_allclose(got, expected, rtol=1e-6 if dtype == "float32" else 1e-14)
