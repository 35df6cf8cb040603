"""Each function of `array_api`, compared with NumPy, whose main namespace implements the standard, too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core import array_api

RNG = np.random.default_rng(0)
MATRIX = RNG.integers(-4, 5, (3, 4))
REAL = RNG.normal(size=(2, 3, 4))
COMPLEX = REAL[0] + 1j * REAL[1]
BYTES = np.array([[200, 100, 7], [9, 0, 255]], np.uint8)
SQUARE = RNG.normal(size=(2, 3, 3))


def to_ours(x: Any) -> Any:
    return core.tensor(x) if isinstance(x, np.ndarray) else x


def check_same(got: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple | list):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            check_same(one, other)
    elif isinstance(wanted, np.ndarray | np.generic):
        assert (tuple(got.shape), str(got.dtype).split(".")[-1]) == (wanted.shape, wanted.dtype.name)
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12, atol=1e-12)
    else:
        assert got == wanted


CASES: list[Callable[[Any, Callable[[Any], Any]], Any]] = [
    # creation
    lambda xp, a: xp.arange(5, 2, dtype=xp.int64),
    lambda xp, a: xp.arange(5.0, 2.0, -0.5, dtype=xp.float64),
    lambda xp, a: xp.arange(3, 0, 2.0, dtype=xp.float64),
    lambda xp, a: xp.eye(3, 4, k=2, dtype=xp.float32),
    lambda xp, a: xp.eye(3, k=-1, dtype=xp.int8),
    lambda xp, a: xp.eye(2, k=7, dtype=xp.float32),
    lambda xp, a: xp.linspace(0.0, 1.0, num=5, endpoint=False, dtype=xp.float64),
    lambda xp, a: xp.linspace(0.0, 1.0 + 2.0j, 5, dtype=xp.complex128),
    lambda xp, a: xp.meshgrid(a(np.arange(2)), a(np.arange(3))),
    lambda xp, a: xp.meshgrid(a(np.arange(2)), a(np.arange(3)), indexing="ij"),
    lambda xp, a: xp.tril(a(MATRIX), k=-1),
    lambda xp, a: xp.triu(a(MATRIX), k=1),
    lambda xp, a: xp.full(3, 7, dtype=xp.uint16),
    lambda xp, a: xp.full_like(a(BYTES), 3),
    lambda xp, a: xp.full((2,), 2**64 - 1, dtype=xp.uint64),
    lambda xp, a: xp.full_like(a(BYTES), 2**63, dtype=xp.float64),
    lambda xp, a: xp.asarray(2**63),
    lambda xp, a: xp.clip(a(np.array([1, 2**64 - 1], np.uint64)), min=0, max=2**63),
    lambda xp, a: xp.greater(a(np.array([1, 2**64 - 1], np.uint64)), 2**63),
    # elements
    lambda xp, a: xp.equal(a(MATRIX), a(MATRIX[:1])),
    lambda xp, a: xp.imag(a(COMPLEX)),
    lambda xp, a: xp.imag(a(REAL)),
    lambda xp, a: xp.round(a(3 * COMPLEX)),
    lambda xp, a: xp.sign(a(COMPLEX)),
    lambda xp, a: xp.atan2(1.0, a(REAL)),
    lambda xp, a: xp.maximum(a(BYTES), 100),
    lambda xp, a: xp.add(a(np.array(1000, np.uint16)), a(BYTES)),  # 0-d arrays take part in promotion
    lambda xp, a: xp.multiply(a(np.array(2.0)), a(REAL.astype(np.float32))),
    lambda xp, a: xp.logical_and(True, a(MATRIX) > 0),
    lambda xp, a: xp.pow(2.0, a(REAL)),
    lambda xp, a: xp.bitwise_left_shift(a(BYTES), 1),
    lambda xp, a: xp.clip(a(MATRIX)),
    lambda xp, a: xp.clip(a(MATRIX), -1, a(np.array([0, 1, 2, 3]))),
    lambda xp, a: xp.clip(a(REAL), min=0.0),
    # shapes and positions
    lambda xp, a: xp.concat([a(MATRIX), a(BYTES)], axis=None),
    lambda xp, a: xp.concat([a(MATRIX), a(MATRIX)], axis=1),
    lambda xp, a: xp.expand_dims(a(MATRIX), axis=(0, -1)),
    lambda xp, a: xp.expand_dims(a(MATRIX), axis=-2),
    lambda xp, a: xp.flip(a(REAL)),
    lambda xp, a: xp.flip(a(REAL), axis=(0, -1)),
    lambda xp, a: xp.moveaxis(a(REAL), (0, 1), (-1, 0)),
    lambda xp, a: xp.reshape(a(MATRIX), (2, -1)),
    lambda xp, a: xp.roll(a(MATRIX), 5),
    lambda xp, a: xp.roll(a(MATRIX), (1, -2), axis=(0, 1)),
    lambda xp, a: xp.roll(a(MATRIX), 1, axis=(0, 1)),
    lambda xp, a: xp.squeeze(a(REAL[:1, :, :1]), axis=(0, 2)),
    lambda xp, a: xp.stack([a(MATRIX), a(MATRIX)], axis=-1),
    lambda xp, a: xp.tile(a(MATRIX), (2, 1, 2)),
    lambda xp, a: xp.repeat(a(MATRIX), 2),
    lambda xp, a: xp.take(a(MATRIX), a(np.array([1, -1], np.int32)), axis=1),
    lambda xp, a: xp.take(a(MATRIX[0]), a(np.array([3, 0]))),
    lambda xp, a: xp.take_along_axis(a(MATRIX), a(np.array([[-1], [0], [1]])), axis=-1),
    lambda xp, a: xp.broadcast_shapes((2, 1), (3,), ()),
    # reductions
    lambda xp, a: xp.max(a(REAL), axis=(0, 2)),
    lambda xp, a: xp.min(a(MATRIX)),
    lambda xp, a: xp.max(a(BYTES), axis=(), keepdims=True),
    lambda xp, a: xp.sum(a(BYTES)),
    lambda xp, a: xp.sum(a(MATRIX.astype(np.int8)), axis=1, keepdims=True),
    lambda xp, a: xp.sum(a(REAL.astype(np.float32)), dtype=xp.float64, axis=()),
    lambda xp, a: xp.prod(a(BYTES), axis=(0, 1)),
    lambda xp, a: xp.prod(a(REAL), axis=(0, 2), keepdims=True),
    lambda xp, a: xp.prod(a(np.array(3, np.int16))),
    lambda xp, a: xp.mean(a(REAL), axis=()),
    lambda xp, a: xp.std(a(REAL)),
    lambda xp, a: xp.var(a(REAL), axis=(1, 2), correction=1),
    lambda xp, a: xp.var(a(REAL), axis=(), correction=0.0),
    lambda xp, a: xp.all(a(BYTES), axis=0),
    lambda xp, a: xp.any(a(BYTES), axis=(), keepdims=True),
    lambda xp, a: xp.cumulative_sum(a(BYTES), axis=1, include_initial=True),
    lambda xp, a: xp.cumulative_prod(a(MATRIX), axis=0),
    lambda xp, a: xp.diff(a(MATRIX), axis=0, n=2),
    lambda xp, a: xp.diff(a(MATRIX), prepend=a(MATRIX[:, :1])),
    # searching, sorting, sets
    lambda xp, a: xp.sort(a(MATRIX), axis=0),
    lambda xp, a: xp.argsort(a(MATRIX), stable=True),
    lambda xp, a: xp.nonzero(a(MATRIX)),
    lambda xp, a: xp.count_nonzero(a(MATRIX), axis=0, keepdims=True),
    lambda xp, a: xp.count_nonzero(a(MATRIX > 0)),
    lambda xp, a: xp.argmax(a(MATRIX), axis=1, keepdims=True),
    lambda xp, a: xp.searchsorted(a(np.array([1.0, 2, 3])), a(np.array([[2.0, 9]])), side="right"),
    lambda xp, a: xp.searchsorted(
        a(np.array([3.0, 1, 2])), a(np.array([2.0])), sorter=a(np.array([1, 2, 0], np.int32))
    ),
    lambda xp, a: xp.where(a(MATRIX > 0), a(MATRIX), 0),
    lambda xp, a: xp.where(a(np.array(True)), a(np.array(1, np.uint8)), a(np.array([2], np.uint16))),
    lambda xp, a: xp.isin(a(MATRIX), a(np.array([0, 1])), invert=True),
    lambda xp, a: tuple(xp.unique_all(a(np.array([1j, 1, 1j, 0, 1])))),
    # products
    lambda xp, a: xp.matmul(a(BYTES), a(MATRIX)),
    lambda xp, a: xp.tensordot(a(BYTES), a(MATRIX), axes=1),
    lambda xp, a: xp.tensordot(a(REAL), a(REAL), axes=((0, 2), (0, 2))),
    lambda xp, a: xp.vecdot(a(COMPLEX), a(REAL[0]), axis=0),
    lambda xp, a: xp.linalg.cross(a(SQUARE), a(SQUARE[0, 0])),
    lambda xp, a: xp.linalg.diagonal(a(SQUARE), offset=9),
    lambda xp, a: xp.linalg.trace(a(BYTES), offset=1),
    lambda xp, a: xp.linalg.outer(a(np.array([1, 2], np.int8)), a(np.array([3], np.uint8))),
    lambda xp, a: xp.linalg.solve(a(SQUARE), a(np.ones(3))),
    lambda xp, a: xp.linalg.solve(a(SQUARE[:1, :1, :1]), a(np.ones(1))),
    lambda xp, a: xp.linalg.solve(a(SQUARE), a(SQUARE[0, :, :2])),
    lambda xp, a: xp.linalg.solve(
        a(SQUARE[:, :2, :2]), a(REAL[0, :2, :2])
    ),  # x2 holds matrices, not a batch of vectors
    lambda xp, a: xp.linalg.matrix_norm(a(REAL), ord="nuc", keepdims=True),
    lambda xp, a: xp.linalg.vector_norm(a(REAL), axis=(0, 2), ord=3),
    lambda xp, a: xp.linalg.vector_norm(a(REAL), axis=1, keepdims=True),
    lambda xp, a: xp.linalg.pinv(a(SQUARE), rtol=1e-9),
    lambda xp, a: xp.linalg.matrix_rank(a(SQUARE)),
    lambda xp, a: xp.linalg.slogdet(a(SQUARE)).logabsdet,
    lambda xp, a: xp.linalg.eigvalsh(a(SQUARE)),
    lambda xp, a: xp.fft.fftn(a(REAL), s=(3, 2), axes=(0, 1), norm="ortho"),
    lambda xp, a: xp.fft.rfft(a(REAL), n=6, axis=1),
    lambda xp, a: xp.fft.fftshift(a(REAL), axes=(1,)),
    lambda xp, a: xp.fft.rfftfreq(5, d=0.5),
]


@pytest.mark.parametrize("case", CASES, ids=[inspect.getsource(case).strip() for case in CASES])
def test_functions_are_numpy_s(case: Callable[[Any, Callable[[Any], Any]], Any]) -> None:
    before = core.get_default_dtype()
    core.set_default_dtype(core.float64)  # the default dtype of NumPy
    try:
        check_same(case(array_api, to_ours), case(np, lambda x: x))
    finally:
        core.set_default_dtype(before)


def test_it_has_the_names_of_the_standard() -> None:
    assert array_api.__array_api_version__ == "2024.12"
    for name in array_api.__all__:
        assert hasattr(array_api, name), name
    lacking = {"asarray", "isdtype", "uint64", "pi", "unique_all", "linalg", "fft"} - set(array_api.__all__)
    assert not lacking
    assert set(array_api.__array_namespace_info__().dtypes()) <= set(array_api.__all__)


def test_order_backwards_keeps_equals_in_place() -> None:
    x = core.tensor([2, 1, 2, 1])
    assert array_api.sort(x, descending=True).tolist() == [2, 2, 1, 1]
    assert array_api.argsort(x, descending=True).tolist() == [0, 2, 1, 3]


def test_copies_of_shapes() -> None:
    x = core.arange(6)
    assert array_api.reshape(x, (2, 3), copy=False).data_ptr() == x.data_ptr()
    assert array_api.reshape(x, (2, 3), copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError, match="copy"):
        array_api.reshape(array_api.reshape(x, (2, 3)).T, (6,), copy=False)


def test_dtypes() -> None:
    xp = array_api
    assert xp.result_type(xp.int8, core.ones((), dtype=core.uint8), xp.uint16) == xp.int32
    assert xp.result_type(xp.int8, 1) == xp.int8
    assert xp.result_type(1.0, core.ones(2, dtype=core.float64)) == xp.float64
    assert xp.result_type(core.ones(2, dtype=core.float32), 1j) == xp.complex64
    with pytest.raises(ValueError, match="result_type"):
        xp.result_type(1, 2.0)
    assert xp.can_cast(xp.int8, xp.int16)
    assert xp.can_cast(core.ones(1, dtype=core.uint8), xp.int16)
    assert not xp.can_cast(xp.int64, xp.int8)
    assert not xp.can_cast(xp.int64, xp.uint64)
    for dtype in (xp.float32, xp.complex128):
        limits, wanted = xp.finfo(core.ones(1, dtype=dtype)), np.finfo(str(dtype).split(".")[-1])
        assert (limits.bits, limits.eps, limits.max) == (wanted.bits, wanted.eps, wanted.max)
        assert limits.dtype == (xp.float64 if dtype is xp.complex128 else dtype)
    whole = xp.iinfo(xp.int16)
    assert (whole.bits, whole.min, whole.max, whole.dtype) == (16, -(2**15), 2**15 - 1, xp.int16)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda xp: xp.squeeze(core.ones(2, 1), axis=0), ValueError, "must have the size 1"),
        (lambda xp: xp.expand_dims(core.ones(2), axis=3), IndexError, "axis"),
        (lambda xp: xp.expand_dims(core.ones(2), axis=(0, -3)), IndexError, "different positions"),
        (lambda xp: xp.nonzero(core.tensor(1)), ValueError, "dimension"),
        (lambda xp: xp.take(core.ones(2, 2), core.tensor([0])), ValueError, "axis"),
        (lambda xp: xp.vecdot(core.ones(3), core.ones(1)), ValueError, "same size"),
        (lambda xp: xp.add(1, 2), TypeError, "one of the arguments must be a tensor"),
        (lambda xp: xp.arange(3, 5, 0), ValueError, "step"),
        (lambda xp: xp.broadcast_shapes((2,), (3,)), ValueError, "broadcast"),
    ],
)
def test_errors(call: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(array_api)


def test_triangles_of_cholesky_have_no_negative_zeros() -> None:
    made = array_api.linalg.cholesky(core.eye(3, dtype=core.complex128), upper=True)
    assert not np.signbit(np.asarray(made.imag)[np.tril_indices(3, -1)]).any()
