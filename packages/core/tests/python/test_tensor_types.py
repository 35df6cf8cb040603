"""Tensor types with old names, storages with a dtype, and methods that are written in Python."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core


def test_types_make_tensors() -> None:
    assert core.FloatTensor([1, 2]).dtype is core.float32
    assert core.LongTensor([[1, 2]]).tolist() == [[1, 2]]
    assert core.ByteTensor(2, 3).shape == (2, 3)
    assert core.DoubleTensor().shape == (0,)
    assert core.HalfTensor(core.Size([4])).shape == (4,)
    assert core.FloatTensor(np.arange(3)).tolist() == [0.0, 1.0, 2.0]
    t = core.ones(2)
    assert core.FloatTensor(t).data_ptr() == t.data_ptr()


def test_types_answer_isinstance() -> None:
    t = core.ones(2)
    assert isinstance(t, core.FloatTensor)
    assert not isinstance(t, core.DoubleTensor)
    assert not isinstance(3, core.FloatTensor)
    assert not isinstance(core.ones(2, device="meta"), core.FloatTensor)
    assert repr(core.FloatTensor) == "<class 'torch.FloatTensor'>"
    assert t.type(core.LongTensor.dtype).type() == "torch.LongTensor"
    assert t.cfloat().type() == "torch.ComplexFloatTensor"


def test_arguments_of_types() -> None:
    with pytest.raises(TypeError, match=r"int64.*\nhint"):
        core.FloatTensor(core.ones(2, dtype=core.int64))
    with pytest.raises(TypeError, match="float"):
        core.FloatTensor(2, 3.0)
    with pytest.raises(RuntimeError, match="cuda"):
        core.FloatTensor(2, device="cuda")


def test_storages() -> None:
    row = core.arange(6.0).view(2, 3)[1]
    storage = row.storage()
    assert (len(storage), storage.size(), storage.nbytes(), storage.element_size()) == (6, 6, 24, 4)
    assert storage.tolist() == list(storage) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert storage[3] == 3.0
    storage[3] = 7.0
    assert row.tolist() == [7.0, 4.0, 5.0]
    assert storage.data_ptr() == row.untyped_storage().data_ptr() == row.const_data_ptr() - 12
    assert "of size 6" in repr(storage)


def test_methods() -> None:
    t = core.ones(2)
    assert t.cfloat().dtype is core.complex64
    assert t.cdouble().dtype is core.complex128
    assert t.int().type(core.Tensor).dtype is core.float32
    assert t.new_tensor([1], core.int64).dtype is core.int64
    assert (t.double().new(2, 3).shape, t.double().new(2, 3).dtype) == ((2, 3), core.float64)
    assert t.new().shape == (0,)
    assert t.new([[1, 2]]).tolist() == [[1.0, 2.0]]
    assert t.new(core.Size([4])).shape == (4,)
    other = core.zeros(2)
    assert t.module_load(other, assign=True).data_ptr() == other.data_ptr()
    assert t.module_load(other).data_ptr() == t.data_ptr()
    assert t.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogramdd(density: bool, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    points, weights = rng.normal(size=(200, 3)), rng.uniform(size=200)
    ends = [np.array([-1.0, 0.0, 0.5]), np.linspace(-2, 2, 5), np.array([0.0, 1.0])]
    given = core.from_numpy(weights) if weighted else None
    for ours, theirs in (
        (3, 3),
        ([2, 3, 4], [2, 3, 4]),
        ([core.from_numpy(e.copy()) for e in ends], ends),
    ):
        result = core.histogramdd(core.from_numpy(points), ours, weight=given, density=density)
        hist, edges = np.histogramdd(points, theirs, weights=weights if weighted else None, density=density)
        np.testing.assert_allclose(result.hist.numpy(), hist, rtol=1e-10)
        for found, expected in zip(result.bin_edges, edges, strict=True):
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)
    ranged = core.histogramdd(core.from_numpy(points), 2, range=[-1, 1, -2, 2, 0, 1])
    expected, _ = np.histogramdd(points, 2, range=[(-1, 1), (-2, 2), (0, 1)])
    np.testing.assert_array_equal(ranged.hist.numpy(), expected)


def test_arguments_of_histogramdd() -> None:
    points = core.zeros(4, 2)
    for wrong, text in (
        (lambda: core.histogramdd(points[0], 2), "shape"),
        (lambda: core.histogramdd(points, [2]), "got 1"),
        (lambda: core.histogramdd(points, 2, range=[0.0, 1.0]), "needs 4"),
        (lambda: core.histogramdd(points, 2, weight=core.ones(3)), "weight"),
        (lambda: core.histogramdd(points, 0), "positive"),
    ):
        with pytest.raises(RuntimeError, match=text):
            wrong()
    with pytest.raises(NotImplementedError, match="int64"):
        core.histogramdd(points.to(core.int64), 2)


def test_numbers_that_are_known() -> None:
    assert (core.sym_max(1, 2.0), core.sym_min(1, 2), core.sym_max(3.0, 1)) == (2.0, 1, 3.0)
    assert type(core.sym_max(3, 1.0)) is float
    assert (core.sym_int(3.7), core.sym_float(2), core.sym_sum([1, 2, 3]), core.sym_sqrt(4)) == (
        3,
        2.0,
        6,
        2.0,
    )
    assert core.sym_ite(core.sym_not(False), 1, 2) == 1
    with pytest.raises(TypeError, match="int and float"):
        core.sym_ite(True, 1, 2.0)


def test_order_of_dimensions() -> None:
    assert core.ones(2, 3, 4, 5).to(memory_format=core.channels_last).dim_order(ambiguity_check=True) == (
        0,
        2,
        3,
        1,
    )
    assert core.ones(2, 3).mT.dim_order(ambiguity_check=True) == (1, 0)
    flat = core.ones(2, 1, 3)
    assert flat.dim_order(ambiguity_check=[core.contiguous_format]) == (0, 1, 2)
    with pytest.raises(RuntimeError, match="more than one order"):
        flat.dim_order(ambiguity_check=True)


def test_range_writes_where_it_is_told() -> None:
    out = core.empty(0)
    with pytest.warns(UserWarning, match="deprecated"):
        core.range(1, 3, out=out)
    assert out.tolist() == [1.0, 2.0, 3.0]


def test_orthogonal_polynomials_are_special() -> None:
    x = core.linspace(-0.9, 0.9, 7, dtype=core.float64)
    np.testing.assert_allclose(
        core.special.chebyshev_polynomial_t(x, 3).numpy(), np.cos(3 * np.arccos(x.numpy())), atol=1e-12
    )
    assert core.special.legendre_polynomial_p(x, 1).tolist() == x.tolist()
