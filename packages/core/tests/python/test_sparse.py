"""Sparse tensors: creation, parts, and every operator with a sparse form, compared with dense tensors."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core import sparse

COO = "coo"
CSR = "csr"


def dense(rows: int = 5, columns: int = 4, seed: int = 3) -> core.Tensor:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.5)
    values[0] = 0  # an empty row
    return core.tensor(values, dtype=core.float64)


def as_layout(t: core.Tensor, layout: str) -> core.Tensor:
    return t.to_sparse() if layout == COO else t.to_sparse_csr()


def uncoalesced() -> core.Tensor:
    """Return [[0, 4, 0], [0, 2, 5]], with two values at (0, 1) and unsorted indices."""
    return core.sparse_coo_tensor([[1, 0, 1, 0], [2, 1, 1, 1]], [5.0, 1.0, 2.0, 3.0], (2, 3))


def check_mark(t: core.Tensor) -> None:
    """Check that a tensor that is marked as coalesced has sorted, distinct indices."""
    if t.layout is core.sparse_coo and t.is_coalesced():
        indices = [tuple(index) for index in t._indices().t().tolist()]
        assert indices == sorted(set(indices))


def same(a: core.Tensor, b: core.Tensor) -> None:
    check_mark(a)
    check_mark(b)
    a, b = a.to_dense(), b.to_dense()
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)


# --- creation ---


def test_coo_parts() -> None:
    s = uncoalesced()
    assert s.layout is core.sparse_coo
    assert (s.is_sparse, s.is_sparse_csr) == (True, False)
    assert (s.shape, s._nnz(), s.sparse_dim(), s.dense_dim()) == ((2, 3), 4, 2, 0)
    assert s._indices().tolist() == [[1, 0, 1, 0], [2, 1, 1, 1]]
    assert s._values().tolist() == [5.0, 1.0, 2.0, 3.0]
    assert not s.is_coalesced()
    assert s.to_dense().tolist() == [[0.0, 4.0, 0.0], [0.0, 2.0, 5.0]]
    c = s.coalesce()
    assert c.is_coalesced()
    assert c.indices().tolist() == [[0, 1, 1], [1, 1, 2]]
    assert c.values().tolist() == [4.0, 2.0, 5.0]
    assert c.coalesce() is c


def test_hybrid() -> None:
    s = core.sparse_coo_tensor([[2, 0, 2]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (3, 2))
    assert (s.sparse_dim(), s.dense_dim()) == (1, 1)
    assert s.to_dense().tolist() == [[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]]
    assert s.coalesce().values().tolist() == [[3.0, 4.0], [6.0, 8.0]]
    assert s.to_dense().to_sparse(1).indices().tolist() == [[0, 2]]


def test_csr_parts() -> None:
    s = core.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [1.0, 2.0, 3.0], (2, 3))
    assert s.layout is core.sparse_csr
    assert (s.is_sparse, s.is_sparse_csr) == (False, True)
    assert (s._nnz(), s.sparse_dim(), s.dense_dim()) == (3, 2, 0)
    assert s.crow_indices().tolist() == [0, 1, 3]
    assert s.col_indices().tolist() == [2, 0, 1]
    assert s.values().tolist() == [1.0, 2.0, 3.0]
    assert s.to_dense().tolist() == [[0.0, 0.0, 1.0], [2.0, 3.0, 0.0]]
    assert core.sparse_csr_tensor(
        core.tensor([0, 1], dtype=core.int32), core.tensor([4], dtype=core.int32), [1.0]
    ).shape == (1, 5)


def test_size_dtype_and_zeros() -> None:
    assert core.sparse_coo_tensor([[0, 3], [1, 0]], [1, 2]).shape == (4, 2)
    assert core.sparse_coo_tensor([[0]], [1], (2,), dtype=core.float64).dtype == core.float64
    nothing = core.sparse_coo_tensor((2, 3))
    assert nothing._nnz() == 0
    assert nothing.is_coalesced()
    assert nothing.to_dense().tolist() == [[0.0] * 3] * 2
    assert core.sparse_coo_tensor(size=(2, 3)).shape == (2, 3)
    assert core.zeros_like(uncoalesced())._nnz() == 0
    assert core.eye(2).sparse_dim() == 0
    assert core.eye(2).dense_dim() == 2


def test_zeros_in_sparse_layouts() -> None:
    for layout in (core.sparse_coo, core.sparse_csr, core.sparse_csc):
        like = core.ones(1, dtype=core.float64)
        for make in (core.zeros, core.empty, like.new_zeros, like.new_empty):
            for size in ((2, 3), (0, 3), (2**40, 5)):
                if layout is core.sparse_coo or size[0] < 3:
                    t = make(size, layout=layout)
                    assert (t.layout, t.shape, t._nnz()) == (layout, size, 0)
            assert t.dtype == (core.float32 if make in (core.zeros, core.empty) else core.float64)
        s = core.zeros(2, 3, dtype=core.int32, layout=layout)
        same(s, core.zeros(2, 3, dtype=core.int32))
        assert core.zeros(2, 3, layout=layout, requires_grad=True).requires_grad
    assert core.zeros(3, 2, 1, layout=core.sparse_coo).sparse_dim() == 3
    same(core.zeros(2, 3, layout=core.sparse_coo) + uncoalesced(), uncoalesced())
    for call in (
        lambda: core.ones(2, layout=core.sparse_coo),
        lambda: core.zeros(2, 3, layout=core.sparse_bsr),
        lambda: core.zeros(3, layout=core.sparse_csr),
        lambda: core.zeros(2, layout=core.sparse_coo, out=core.ones(2)),
        lambda: core.zeros(2, layout=core.sparse_coo, pin_memory=True),
    ):
        with pytest.raises(NotImplementedError, match=r"^(zeros|ones)"):
            call()
    with pytest.raises(RuntimeError, match="must not be negative"):
        core.zeros(-1, 2, layout=core.sparse_coo)
    with pytest.raises(NotImplementedError, match=r"new_empty\(size\): must have two dimensions for layout"):
        core.ones(1).new_empty((3,), layout=core.sparse_csr)
    with pytest.raises(RuntimeError, match=r"empty\(memory_format\): sparse tensors have no memory format"):
        core.empty(2, 3, 4, 5, layout=core.sparse_coo, memory_format=core.channels_last)


def test_conversions_of_indices() -> None:
    row, col = core.tensor([0, 2, 2, 3]), core.tensor([1, 0, 2, 1])
    for narrow in (False, True):
        crow = core._convert_indices_from_coo_to_csr(row, 5, out_int32=narrow)
        assert crow.tolist() == [0, 1, 1, 3, 4, 4]
        both = core._convert_indices_from_csr_to_coo(crow, col, out_int32=narrow)
        assert both.tolist() == [row.tolist(), col.tolist()]
        assert crow.dtype == both.dtype == (core.int32 if narrow else core.int64)
    assert core._convert_indices_from_csr_to_coo(crow, col, transpose=True)[0].tolist() == col.tolist()
    with pytest.raises(RuntimeError, match="must be a vector"):
        core._convert_indices_from_coo_to_csr(core.zeros(2, 2), 2)
    with pytest.raises(NotImplementedError, match="batches"):
        core._convert_indices_from_csr_to_coo(crow, core.zeros(2, 2))


def test_fewer_than_two_entries_are_coalesced() -> None:
    one = core.sparse_coo_tensor([[0], [1]], [5.0], (2, 2))
    assert one.is_coalesced()
    assert one.coalesce() is one
    assert (one.indices().tolist(), one.values().tolist()) == ([[0], [1]], [5.0])
    assert not core.sparse_coo_tensor([[0], [1]], [5.0], (2, 2), is_coalesced=False).is_coalesced()
    assert not core.sparse_coo_tensor([[0, 0]], [5.0, 6.0], (2,)).is_coalesced()
    none = core.sparse_coo_tensor(core.zeros(2, 0, dtype=core.int64), core.zeros(0), (2, 3))
    assert none.is_coalesced()
    assert (none.indices().shape, none.values().shape) == ((2, 0), (0,))


def test_size_of_a_tensor_without_entries() -> None:
    indices = core.zeros(2, 0, dtype=core.int64)
    assert core.sparse_coo_tensor(indices, core.zeros(0)).shape == (0, 0)
    assert core.sparse_coo_tensor([[], []], core.zeros(0, 3)).shape == (0, 0, 3)


@pytest.mark.parametrize("dtype", [core.float32, core.bfloat16, core.int64, core.complex64, core.bool])
def test_conversions(dtype: core.dtype) -> None:
    t = dense().to(dtype)
    for layout in (COO, CSR):
        s = as_layout(t, layout)
        assert s.dtype == dtype
        assert bool((s.to_dense() == t).all())
    assert bool((t.to_sparse_csr().to_sparse().to_dense() == t).all())
    assert t.to_sparse(layout=core.sparse_csr).is_sparse_csr
    assert t.to_sparse_coo().is_sparse
    assert t.to_sparse().to(core.complex128).dtype == core.complex128


def test_tensors_without_dimensions() -> None:
    """A tensor without dimensions has indices of shape (0, nnz). All values are at its only position."""
    one, zero = core.tensor(3.0).to_sparse(), core.tensor(0.0).to_sparse(0)
    two = core.sparse_coo_tensor(core.zeros(0, 2, dtype=core.int64), [3.0, 4.0], ())
    assert (one._indices().shape, one._nnz(), zero._nnz(), two._nnz()) == ((0, 1), 1, 0, 2)
    assert (one.sparse_dim(), one.dense_dim(), one.is_coalesced(), two.is_coalesced()) == (0, 0, True, False)
    assert two.coalesce()._values().tolist() == [7.0]
    assert two.coalesce().indices().shape == (0, 1)
    for made in (core.zeros((), layout=core.sparse_coo), core.sparse_coo_tensor(size=()), zero):
        assert made.to_dense().item() == 0
    results = [
        one,
        two,
        one + two,
        two * 2,
        two * two,
        core.tensor(1.0) + two,
        -two,
        two.abs(),
        two.unsqueeze(0)[0],
    ]
    dense = [t.to_dense().item() for t in results]
    assert dense == [3.0, 7.0, 10.0, 14.0, 49.0, 8.0, -7.0, 7.0, 7.0]
    assert core.zeros(()).add_(two, alpha=2).item() == 14.0
    assert [two.sum().item(), two.norm().item(), one.to_sparse()._nnz()] == [7.0, 7.0, 1]
    assert core.tensor(5.0).sparse_mask(one).to_dense().item() == 5.0
    assert core.stack([one, two]).to_dense().tolist() == [3.0, 7.0]
    assert two.permute(()).to_dense().item() == 7.0
    assert two.transpose(0, -1).to_dense().item() == 7.0
    assert (one.item(), float(two), bool(zero), int(two)) == (3.0, 7.0, False, 7)
    assert core.ones(1, 1, dtype=core.int64).to_sparse_csr().item() == 1
    assert "size=(), nnz=1" in str(one)
    hybrid = core.sparse_coo_tensor(core.zeros(0, 2, dtype=core.int64), core.ones(2, 3), (3,))
    assert hybrid.to_dense().tolist() == [2.0] * 3
    assert (hybrid * core.arange(3.0)).to_dense().tolist() == [0.0, 2.0, 4.0]
    assert hybrid.to_sparse().dense_dim() == 1
    for x, dims in ((core.tensor(3.0), 1), (core.ones(2), 0), (core.ones(2), 2)):
        with pytest.raises(RuntimeError, match=r"to_sparse\(sparse_dim\): must be in"):
            x.to_sparse(dims)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([[0, 5]], [1.0, 2.0], (3,)), "out of range for size 3"),
        ((core.zeros(0, 1, dtype=core.int64), 1.0, ()), "at least one dimension"),
        (([[0, -1]], [1.0, 2.0], (3,)), "negative index"),
        (([[0, 1]], [1.0], (3,)), "must have same nnz"),
        (([[0, 1], [0, 1]], [1.0, 2.0], (3,)), "len.size. == sparse_dim"),
        (([[0, 1]], [[1.0], [2.0]], (3, 2)), "incorrect size"),
        (([0, 1], [1.0, 2.0], (3,)), "sparse_dim x nnz"),
        ((core.tensor([[0.0]]), [1.0], (3,)), "must be integers"),
        (([[0]], [1.0], (-3,)), "negative"),
        (([[0]], [1.0], (1 << 40, 1 << 40)), "len|too large"),
    ],
)
def test_bad_coo(arguments: tuple, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        core.sparse_coo_tensor(*arguments)


@pytest.mark.parametrize(
    ("crow", "col", "text"),
    [
        ([0, 1], [0], r"nrows \+ 1"),
        ([0, 2, 1], [0, 1], r"crow_indices\[..., -1\] == nnz"),
        ([1, 2, 2], [0, 1], r"crow_indices\[..., 0\] == 0"),
        ([0, 3, 2], [0, 1], "crow_indices"),
        ([0, 1, 2], [0, 5], "out of range"),
        ([0, 2, 2], [1, 0], "sorted and distinct"),
        ([0, 2, 2], [1, 1], "sorted and distinct"),
        ([0, 1, 2], [0], "same nnz"),
        ([0.0, 1.0, 2.0], [0, 1], "int32 or int64"),
    ],
)
def test_bad_csr(crow: list, col: list, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        core.sparse_csr_tensor(crow, col, [1.0, 2.0], (2, 2))


def test_checks_can_be_left_out_and_kernels_still_hold_bounds() -> None:
    given = ([[0, 7], [0, 1]], [1.0, 2.0], (3, 2))
    with pytest.raises(RuntimeError):
        core.sparse_coo_tensor(*given)
    bad = core.sparse_coo_tensor(*given, check_invariants=False)
    for use in (lambda: bad @ core.ones(2, 2), bad.to_dense, lambda: core.ones(3, 2) + bad):
        with pytest.raises(IndexError):
            use()
    with sparse.check_sparse_tensor_invariants(False):
        assert not sparse.check_sparse_tensor_invariants.is_enabled()
        assert core.sparse_coo_tensor(*given)._nnz() == 2
        with pytest.raises(RuntimeError):
            core.sparse_coo_tensor(*given, check_invariants=True)
    assert sparse.check_sparse_tensor_invariants.is_enabled()
    with pytest.raises(RuntimeError, match="is_coalesced"):
        core.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (3,), is_coalesced=True)


@pytest.mark.parametrize("layout", [core.sparse_coo, core.sparse_csr, core.sparse_csc])
def test_zeros_like_another_tensor(layout: core.layout) -> None:
    like = dense()
    s = like.to_sparse(layout=layout)
    for make in (core.zeros_like, core.empty_like):
        for t in (make(like, layout=layout), make(s), make(like.to_sparse(), layout=layout)):
            assert (t.layout, t.shape, t.dtype, t._nnz()) == (layout, like.shape, like.dtype, 0)
        for t in (make(s, layout=core.strided), make(s, layout=core.strided, dtype=core.int64)):
            assert (t.layout, t.shape, t.is_contiguous()) == (core.strided, like.shape, True)
    same(core.zeros_like(s, layout=core.strided), core.zeros_like(like))
    same(core.ones_like(s, layout=core.strided), core.ones_like(like))
    same(core.full_like(s, 3, layout=core.strided), core.full_like(like, 3))
    assert core.rand_like(s, layout=core.strided).shape == like.shape
    assert core.zeros_like(like, layout=layout, requires_grad=True).requires_grad
    for new in (s.new_zeros, s.new_empty):
        t = new(2, 3)
        assert (t.layout, t.shape, t.dtype, t._nnz()) == (layout, (2, 3), like.dtype, 0)
        assert new(2, 3, dtype=core.int64).dtype == core.int64
        assert new(2, 3, layout=core.strided).layout == core.strided
    assert s.new_ones(2, 3).layout == core.strided
    with pytest.raises(NotImplementedError, match="zeros_like"):
        core.zeros_like(like, layout=core.sparse_bsr)
    with pytest.raises(NotImplementedError, match="new_zeros"):
        dense(4).to_sparse_bsr((2, 2)).new_zeros(2, 2)


def test_methods_of_the_wrong_layout() -> None:
    plain, s, c = core.eye(2), uncoalesced(), core.eye(2).to_sparse_csr()
    for call, text in [
        (plain.coalesce, "coalesce expected sparse coordinate tensor layout but got torch.strided"),
        (plain.indices, "indices expected sparse coordinate tensor layout but got Strided"),
        (plain.values, "values expected sparse tensor layout but got Strided"),
        (plain.is_coalesced, "is_coalesced expected"),
        (plain.crow_indices, "crow_indices expected sparse row compressed tensor layout but got Strided"),
        (s.crow_indices, "crow_indices expected"),
        (c.indices, "indices expected"),
        (plain._nnz, "_nnz expected"),
        (s.indices, "uncoalesced tensor, please call"),
        (s.values, "uncoalesced tensor, please call"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


# --- operators without a sparse form ---


@pytest.mark.parametrize("layout", [COO, CSR])
def test_other_operators_raise_one_error(layout: str) -> None:
    s = as_layout(dense(), layout)
    for call in (
        lambda: s.cos(),
        lambda: s == s,
        lambda: s.reshape(-1),
        lambda: core.softmax(s, 0).exp(),
        lambda: s.squeeze(0),
        lambda: core.ones(5, 4).where(s, s),
        lambda: core.mul(s, s, out=core.zeros(5, 4)),
    ):
        with pytest.raises(NotImplementedError, match=rf"torch\.sparse_{layout}\n.*to_dense"):
            call()
    for call in (s.tolist, s.data_ptr, s.untyped_storage, lambda: memoryview(s), lambda: core.from_dlpack(s)):
        with pytest.raises((RuntimeError, TypeError, BufferError), match=rf"torch\.sparse_{layout}"):
            call()
    with pytest.raises(TypeError, match=rf"torch\.sparse_{layout}"):
        s.numpy()
    with pytest.raises(RuntimeError, match="data"):
        core.ones(5, 4).data = s


@pytest.mark.parametrize("layout", [COO, CSR])
def test_assignments_to_elements_raise(layout: str) -> None:
    indices = ((0, 0), 0, (0, slice(None)), slice(0, 2), ..., core.tensor([0, 1]), (slice(None), 1))
    for index in indices:
        s = as_layout(dense(), layout)
        with pytest.raises(
            TypeError, match=rf"cannot assign to a sparse tensor, got layout torch\.sparse_{layout}"
        ):
            s[index] = 1.0
        same(s, dense())
    hybrid = dense().to_sparse(1)
    with pytest.raises(TypeError, match="cannot assign to a sparse tensor"):
        hybrid[0] = 2.0
    plain = dense().clone()
    plain[1] = as_layout(dense(), layout)[2]
    same(plain[1], dense()[2])


# --- copies ---


@pytest.mark.parametrize("layout", [COO, CSR])
def test_copies(layout: str) -> None:
    s = as_layout(dense(), layout)
    for other in (s.clone(), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), copy.copy(s)):
        same(other, s)
        assert other.layout is s.layout
    changed = s.clone()
    changed.mul_(2)
    same(s, dense())
    same(changed, dense() * 2)
    alias = s.detach()
    alias.mul_(3)
    same(s, dense() * 3)
    assert s.zero_() is s
    assert s._nnz() == 0
    same(s, core.zeros_like(dense()))
    s.copy_(changed)
    same(s, dense() * 2)


def test_printing() -> None:
    assert repr(uncoalesced()) == (
        "tensor(indices=tensor([[1, 0, 1, 0],\n"
        "                       [2, 1, 1, 1]]),\n"
        "       values=tensor([5., 1., 2., 3.]),\n"
        "       size=(2, 3), nnz=4, layout=torch.sparse_coo)"
    )
    assert repr(core.eye(3).to_sparse_csr()) == (
        "tensor(crow_indices=tensor([0, 1, 2, 3]),\n"
        "       col_indices=tensor([0, 1, 2]),\n"
        "       values=tensor([1., 1., 1.]), size=(3, 3), nnz=3,\n"
        "       layout=torch.sparse_csr)"
    )
    assert repr(core.sparse_coo_tensor((2, 3), dtype=core.float64)) == (
        "tensor(indices=tensor([], size=(2, 0)),\n"
        "       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, dtype=torch.float64, layout=torch.sparse_coo)"
    )
    assert repr(core.sparse_coo_tensor([[0, 1]], [1.0, 2.0], requires_grad=True)).endswith(
        "size=(2,), nnz=2, layout=torch.sparse_coo, requires_grad=True)"
    )


# --- arithmetic ---


@pytest.mark.parametrize("layout", [COO, CSR])
def test_sums_of_tensors(layout: str) -> None:
    a, b = dense(seed=1), dense(seed=2)
    s, t = as_layout(a, layout), as_layout(b, layout)
    for result, wanted in [
        (s + t, a + b),
        (core.add(s, t, alpha=-3), a - 3 * b),
        (s - t, a - b),
        (s + s, a + a),
        (a + t, a + b),
        (core.sub(a, t, alpha=2), a - 2 * b),
        (s + b, a + b),
    ]:
        same(result, wanted)
    assert (s + t).layout is s.layout
    assert not (a + t).is_sparse
    total = s.clone()
    total += t
    same(total, a + b)
    plain = a.clone()
    plain.add_(t, alpha=2)
    same(plain, a + 2 * b)
    transposed = dense(4, 5, seed=1).t()
    same(transposed.add_(t), dense(4, 5, seed=1).t() + b)
    for bad in (lambda: s + 1, lambda: s.add_(b)):
        with pytest.raises(NotImplementedError, match="not supported"):
            bad()
    with pytest.raises(RuntimeError, match="the same shape"):
        s + as_layout(dense(3, 4), layout)
    with pytest.raises(RuntimeError, match="can't be cast"):
        core.ones(5, 4, dtype=core.int64).add_(s)


FUNCTIONS = (
    "abs asin asinh atan atanh ceil deg2rad erf expm1 floor frac log1p neg rad2deg relu round sgn sign sin sinh sqrt "
    "square tan tanh trunc"
)


@pytest.mark.parametrize("layout", [COO, CSR])
def test_functions_in_place(layout: str) -> None:
    for name in FUNCTIONS.split():
        values = dense().abs() / 8
        s = as_layout(values, layout)
        alias, version = s.detach(), s._version
        assert getattr(s, name + "_")() is s
        same(s, getattr(values, name)())
        same(alias, s)
        assert s._version > version
    s = as_layout(dense(), layout)
    s.pow_(2).floor_divide_(0.25).clamp_(0, 3)
    same(s, dense().pow(2).floor_divide(0.25).clamp(0, 3))
    s = uncoalesced().neg_()
    assert s._values().tolist() == [-5.0, -1.0, -2.0, -3.0]
    same(uncoalesced().square_(), uncoalesced().to_dense().square())
    integers = as_layout(core.eye(2, dtype=core.int64), layout)
    with pytest.raises(RuntimeError, match="result type"):
        integers.sin_()
    same(integers, core.eye(2, dtype=core.int64))
    for call in (lambda: s.cos_(), lambda: s.exp_(), lambda: s.fill_(1), lambda: s.add_(1)):
        with pytest.raises(NotImplementedError, match="to_dense"):
            call()


def test_transposes_in_place() -> None:
    for layout in (COO, CSR):
        s = as_layout(dense(), layout)
        alias, version = s.detach(), s._version
        assert s.t_() is s
        same(s, dense().t())
        same(alias, dense())
        assert s._version > version
        same(s.transpose_(0, 1), dense())
        same(s.swapaxes_(0, 1), dense().t())
    cube = core.arange(24.0).reshape(2, 3, 4).to_sparse()
    same(cube.transpose_(0, -1), core.arange(24.0).reshape(2, 3, 4).transpose(0, -1))


@pytest.mark.parametrize("layout", [COO, CSR])
def test_plain_tensors_that_are_written(layout: str) -> None:
    a, b = as_layout(dense(), layout), core.arange(12.0, dtype=core.float64).reshape(4, 3)
    same(core.ones(5, 3, dtype=core.float64).addmm_(a, b, beta=2), 2 + dense() @ b)
    same(core.ones(5, dtype=core.float64).addmv_(a, b[:, 0], alpha=3), 1 + 3 * (dense() @ b[:, 0]))
    plain = core.full((5, 4), 3.0, dtype=core.float64)
    assert plain.mul_(a) is plain
    same(plain, 3 * dense())
    with pytest.raises(NotImplementedError, match="division by a sparse tensor"):
        plain.div_(a)
    with pytest.raises(NotImplementedError, match="addmm_: a sparse input"):
        a.addmm_(dense(), dense(4))


def test_changes_of_the_shape() -> None:
    s = uncoalesced()
    alias = s.detach()
    assert s.sparse_resize_((4, 5), 2, 0) is s
    assert (s.shape, s._nnz(), alias.shape) == ((4, 5), 4, (2, 3))
    assert s.to_dense()[:2, :3].tolist() == [[0.0, 4.0, 0.0], [0.0, 2.0, 5.0]]
    with pytest.raises(RuntimeError, match="shrinking the size of sparse dimensions"):
        s.sparse_resize_((1, 5), 2, 0)
    with pytest.raises(RuntimeError, match="numbers of sparse and dense dimensions"):
        s.sparse_resize_((4, 5, 1), 2, 1)
    with pytest.raises(RuntimeError, match="sparse_dim"):
        s.sparse_resize_((4,), 2, 0)
    hybrid = dense().to_sparse(1)
    with pytest.raises(NotImplementedError, match="dense dimensions"):
        hybrid.sparse_resize_((5, 7), 1, 1)
    assert s.sparse_resize_and_clear_((3, 2), 1, 1) is s
    assert (s.shape, s.sparse_dim(), s.dense_dim(), s._nnz()) == ((3, 2), 1, 1, 0)
    assert s.sparse_resize_((2, 2), 2, 0).sparse_dim() == 2
    assert core.resize_as_sparse_(uncoalesced(), core.zeros(6, 6, layout=core.sparse_coo)).shape == (6, 6)
    for other in (core.eye(2), dense().to_sparse_csr()):
        with pytest.raises(RuntimeError, match="sparse_resize_ expected sparse coordinate tensor layout"):
            other.sparse_resize_((9, 9), 2, 0)
    for values in ([], [2.0]):
        x = core.sparse_coo_tensor([[0] * len(values)], values, (1,))
        for resize in (x.sparse_resize_, x.sparse_resize_and_clear_):
            for size, dims in (((), (1, 0)), ((3, 4), (1, 0)), ((3,), (1, 1))):
                with pytest.raises(RuntimeError, match=r"size\): must have sparse_dim"):
                    resize(size, *dims)
            for dims in ((2, -1), (-1, 2)):
                with pytest.raises(RuntimeError, match="must not be negative"):
                    resize((3,), *dims)
        assert x.shape == (1,)
    with pytest.raises(RuntimeError, match="sparse_resize_and_clear_"):
        s.sparse_resize_and_clear_((3,), 2, 0)
    with pytest.raises(RuntimeError, match="template"):
        core.resize_as_sparse_(s, core.eye(2))
    assert core.is_same_size(s, core.zeros(2, 2))
    assert not core.zeros(2, 2).is_same_size(dense())


def test_older_names_of_products() -> None:
    a, b = dense().to_sparse(), core.arange(12.0, dtype=core.float64).reshape(4, 3)
    product = core.hspmm(a, b)
    assert (product.sparse_dim(), product.dense_dim()) == (1, 1)
    assert product._indices()[0].tolist() == a._indices()[0].unique().tolist()
    same(product, dense() @ b)
    same(core.hsmm(a, b), dense() @ b)
    same(core.dsmm(b.t(), a.t()), b.t() @ dense().t())
    given = (dense() @ b).to_sparse()
    for function in (core.sspaddmm, core.saddmm, core.Tensor.sspaddmm):
        total = function(given, a, b, beta=0.5, alpha=2)
        assert total.layout is core.sparse_coo
        same(total, 2.5 * (dense() @ b))
    for call in (
        lambda: core.hspmm(b, b),
        lambda: core.hspmm(a, a),
        lambda: core.sspaddmm(b, a, b),
        lambda: core.sspaddmm(given, dense(), b),
    ):
        with pytest.raises(RuntimeError, match=r"torch\.sparse_coo"):
            call()


def test_plain_factors_with_a_sparse_input_or_out() -> None:
    s, d = dense(3, 3).to_sparse(), dense(3, 3)
    for call in (
        lambda: core.addmm(s, d, d),
        lambda: core.mm(d, d, out=s),
        lambda: core.mv(d, d[0], out=s),
        lambda: core.bmm(d[None], d[None], out=s),
        lambda: core.matmul(d, d, out=s),
        lambda: core.addmm(d, d, d, out=s),
        lambda: core.addmv(d[0], d, d[0], out=s),
    ):
        with pytest.raises(RuntimeError, match="sparse"):
            call()


def test_sums_keep_coalesced() -> None:
    a, b = dense(seed=1).to_sparse(), dense(seed=2).to_sparse()
    assert (a + b).is_coalesced()
    u = uncoalesced()
    assert not (u + u.coalesce()).is_coalesced()
    same(u + u.coalesce(), u.to_dense() * 2)


@pytest.mark.parametrize("layout", [COO, CSR])
def test_products_element_by_element(layout: str) -> None:
    a, b = dense(seed=1), dense(seed=2)
    s = as_layout(a, layout)
    full = core.tensor(np.random.default_rng(5).normal(size=(5, 4)))
    for result, wanted in [
        (s * 3, a * 3),
        (3 * s, a * 3),
        (s * core.tensor(2.0, dtype=core.float64), a * 2),
        (s * full, a * full),
        (full * s, a * full),
        (s * full[0], a * full[0]),
        (s * full[:, :1], a * full[:, :1]),
        (s * as_layout(b, layout), a * b),
        (s * s, a * a),
        (s / 4, a / 4),
        (s / (full.abs() + 1), a / (full.abs() + 1)),
        (-s, -a),
        (s.abs().sqrt(), a.abs().sqrt()),
        (s.sin(), a.sin()),
        (s**2, a**2),
        (s.clamp(-0.5, 0.5), a.clamp(-0.5, 0.5)),
        (s.round(), a.round()),
        (s.frac(), a.frac()),
        (+s, a),
        (s // 2, a // 2),
    ]:
        same(result, wanted)
        assert result.layout is s.layout
    inplace = s.clone()
    inplace.mul_(2).div_(full.abs() + 1)
    same(inplace, a * 2 / (full.abs() + 1))
    same(uncoalesced() ** 2, uncoalesced().to_dense() ** 2)
    same(uncoalesced() * uncoalesced(), uncoalesced().to_dense() ** 2)
    special = core.tensor([[0.0, float("inf"), -1.0], [-float("inf"), float("nan"), 2.0]])
    for name in ("isinf", "isposinf", "isneginf", "signbit", "isnan"):
        same(getattr(core, name)(as_layout(special, layout)), getattr(core, name)(special))
    same(uncoalesced() // 2, uncoalesced().to_dense() // 2)
    for divide in (lambda: full / s, lambda: full // s):
        with pytest.raises(NotImplementedError, match="division by a sparse"):
            divide()
    with pytest.raises(NotImplementedError, match="division by a dense tensor"):
        s // full
    with pytest.raises(NotImplementedError, match="must be positive"):
        s**0
    with pytest.raises(NotImplementedError, match="min <= 0 <= max"):
        s.clamp(1, 2)
    with pytest.raises(RuntimeError, match="broadcast"):
        s * core.ones(3, dtype=core.float64)


# --- sums, norms, softmax ---


@pytest.mark.parametrize("layout", [COO, CSR])
def test_sums(layout: str) -> None:
    a = dense()
    s = as_layout(a, layout)
    same(s.sum(), a.sum())
    same(sparse.sum(s), a.sum())
    for dim in (0, 1, -1):
        same(sparse.sum(s, dim), a.sum(dim))
        assert sparse.sum(s, dim).is_sparse
    same(sparse.sum(s, (0, 1)), a.sum())
    assert not sparse.sum(s, (0, 1)).is_sparse
    assert sparse.sum(s, dtype=core.float32).dtype == core.float32
    for p in (1, 2, 3, float("inf")):
        same(s.norm(p), a.norm(p))
    same(s.norm(), a.norm())
    same(core.linalg.vector_norm(s), core.linalg.vector_norm(a))
    for dim in (0, 1, (0, 1), (), (-1, 0)):
        same(s.sum(dim, keepdim=True), a.sum(dim, keepdim=True))
    assert s.sum(1, keepdim=True).layout is s.layout
    same(s.sum(0, keepdim=True, dtype=core.float32), a.sum(0, keepdim=True, dtype=core.float32))
    with pytest.raises(IndexError):
        sparse.sum(s, 2)
    with pytest.raises(RuntimeError, match="needs a sparse tensor"):
        sparse.sum(a)


@pytest.mark.parametrize("layout", [COO, CSR])
@pytest.mark.parametrize("dtype", [core.int8, core.uint8, core.int16, core.bool], ids=str)
def test_sums_of_small_integers_do_not_wrap_around(layout: str, dtype: core.dtype) -> None:
    a = core.full((400, 2), 100).to(dtype)
    s = as_layout(a, layout)
    for dim in (0, 1, (0, 1)):
        same(s.sum(dim), a.sum(dim))
        same(s.sum(dim, keepdim=True), a.sum(dim, keepdim=True))
        assert s.sum(dim).dtype == core.int64
    assert s.sum(0, dtype=core.int32).dtype == core.int32
    assert sparse.sum(s, 0).dtype == dtype  # as in PyTorch


def test_sum_of_hybrid() -> None:
    s = core.sparse_coo_tensor([[2, 0, 2]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (3, 2))
    for dim in (0, 1, (0, 1)):
        for dtype in (None, core.float64, core.int64):
            same(sparse.sum(s, dim, dtype), s.to_dense().sum(dim, dtype=dtype))
    same(uncoalesced().norm(), uncoalesced().to_dense().norm())


@pytest.mark.parametrize("layout", [COO, CSR])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(layout: str, dim: int) -> None:
    a = dense()
    s = as_layout(a, layout)
    lowest = core.where(a != 0, a, -float("inf"))
    wanted = core.where(a != 0, core.softmax(lowest, dim), 0.0)
    same(sparse.softmax(s, dim), wanted)
    same(sparse.log_softmax(s, dim), core.where(a != 0, core.log_softmax(lowest, dim), 0.0))
    # Large values do not overflow.
    same(sparse.softmax(s * 1e4, dim).sum(), core.where(a != 0, core.softmax(lowest * 1e4, dim), 0.0).sum())


def test_softmax_of_hybrid_and_of_one_dimension() -> None:
    s = core.sparse_coo_tensor([[2, 0]], [[1.0, 2.0], [3.0, 5.0]], (3, 2)).to(core.float64)
    same(sparse.softmax(s, 1)._values(), core.softmax(s.coalesce()._values(), 1))
    same(sparse.softmax(s, 0).coalesce().values(), core.softmax(s.coalesce().values(), 0))
    assert sparse.softmax(core.sparse_coo_tensor((2, 3)), 0)._nnz() == 0


# --- matrix products ---


@pytest.mark.parametrize("layout", [COO, CSR])
@pytest.mark.parametrize("dtype", [core.float64, core.float32, core.bfloat16, core.complex128, core.int64])
def test_matrix_products(layout: str, dtype: core.dtype) -> None:
    a = (dense() * 4).round().to(dtype)
    s = as_layout(a, layout)
    for width in (1, 3, 70):
        b = (core.arange(4 * width).reshape(4, width) % 7 - 3).to(dtype)
        wanted = (a.to(core.complex128) @ b.to(core.complex128)).to(dtype)
        for product in (s @ b, core.mm(s, b), sparse.mm(s, b), core.spmm(s, b)):
            assert bool((product == wanted).all())
    left = (core.arange(15).reshape(3, 5) % 4).to(dtype)
    assert bool((left @ s == (left.to(core.complex128) @ a.to(core.complex128)).to(dtype)).all())
    vector = core.arange(4).to(dtype)
    assert bool((s @ vector == (a.to(core.complex128) @ vector.to(core.complex128)).to(dtype)).all())
    assert bool((s.mv(vector) == s @ vector).all())


@pytest.mark.parametrize("layout", [COO, CSR])
def test_more_products(layout: str) -> None:
    a, b = dense(5, 4, 1), dense(4, 6, 2)
    s, t = as_layout(a, layout), as_layout(b, layout)
    same(s @ t, a @ b)
    assert (s @ t).layout is s.layout
    m = core.ones(5, 6, dtype=core.float64)
    same(core.addmm(m, s, b, beta=2, alpha=3), 2 * m + 3 * (a @ b))
    same(sparse.addmm(m, s, b, beta=0.5), 0.5 * m + a @ b)
    same(sparse.addmm(m[0], s, b), m[0] + a @ b)
    same(core.addmm(core.full_like(m, float("inf"))[:1, :1], s, b, beta=0), a @ b)
    same(
        sparse.sampled_addmm(
            s, core.ones(5, 3, dtype=core.float64), core.ones(3, 4, dtype=core.float64), beta=2
        ),
        2 * a + 3.0 * (a != 0),
    )
    z = sparse.sampled_addmm(s.to(core.complex64), core.full((5, 3), 1j), core.full((3, 4), 2j))
    same(z, (a - 6.0 * (a != 0)).to(core.complex64))
    same(core.smm(s, b), a @ b)
    same(s.t(), a.t())
    same(s.transpose(0, 1) @ a, a.t() @ a)
    for bad in (
        lambda: s @ core.ones(3, 2, dtype=core.float64),
        lambda: s @ core.ones(4, 2),
        lambda: core.bmm(s, s),
    ):
        with pytest.raises(RuntimeError):
            bad()
    with pytest.raises(NotImplementedError, match="not a matrix"):
        core.sparse_coo_tensor([[0]], [[1.0]], (2, 1)) @ core.ones(1, 2)


def test_products_of_batches() -> None:
    a, b = core.stack([dense(5, 4, 1), dense(5, 4, 2)]), core.stack([dense(4, 3, 3), dense(4, 3, 4)])
    s = a.to_sparse()
    same(core.bmm(s, b), core.bmm(a, b))
    same(s @ b, a @ b)
    same(core.bmm(core.cat([s, s]).index_select(0, core.tensor([3, 0])), b), core.bmm(a.flip(0), b))
    same(core.bmm(s.to(core.int64), b.to(core.int64)), core.bmm(a.to(core.int64), b.to(core.int64)))
    out = core.empty(0, dtype=core.float64)
    assert core.bmm(s, b, out=out) is out
    same(out, core.bmm(a, b))
    same(core.bmm(core.zeros(2, 5, 4).to_sparse(), core.ones(2, 4, 3)), core.zeros(2, 5, 3))
    with pytest.raises(NotImplementedError, match="a sparse mat2"):
        core.bmm(a, b.to_sparse())
    with pytest.raises(NotImplementedError, match="three sparse dimensions"):
        core.bmm(a.to_sparse(2), b)
    with pytest.raises(RuntimeError, match=r"bmm\(mat2\): must have the shape \(2, 4, p\), got \(2, 5, 4\)"):
        core.bmm(s, a)


@pytest.mark.parametrize("layout", [COO, CSR])
def test_reduced_products(layout: str) -> None:
    a, b = dense(5, 4, 1), core.tensor(np.random.default_rng(5).normal(size=(4, 3)))
    s = as_layout(a, layout)
    reduced = {
        "sum": lambda rows: rows.sum(0),
        "mean": lambda rows: rows.mean(0),
        "amax": lambda rows: rows.amax(0),
        "amin": lambda rows: rows.amin(0),
    }
    for name, of_rows in reduced.items():
        want = core.zeros(5, 3, dtype=core.float64)
        for i, row in enumerate(a):
            if (stored := row.nonzero().flatten()).numel():
                want[i] = of_rows(row[stored].unsqueeze(1) * b[stored])
        same(sparse.mm(s, b, name), want)
        same(sparse.mm(s, b, reduce=name), want)
    # Values at the same position are added before the products are reduced.
    same(sparse.mm(uncoalesced(), core.ones(3, 1), "amax"), core.tensor([[4.0], [5.0]]))
    with pytest.raises(ValueError, match=r"sparse.mm\(reduce\)"):
        sparse.mm(s, b, "median")
    with pytest.raises(NotImplementedError, match="needs a sparse mat1 and a dense mat2"):
        sparse.mm(a, s.t(), "sum")


@pytest.mark.parametrize("layout", [COO, CSR])
def test_linear_with_a_sparse_weight(layout: str) -> None:
    a = dense(3, 4, 1)
    s = as_layout(a, layout)
    assert bool((s.to_sparse(layout=core.strided) == a).all())
    bias = core.arange(3, dtype=core.float64)
    for shape in ((4,), (2, 4), (0, 4), (5, 2, 4)):
        x = core.arange(core.zeros(shape).numel(), dtype=core.float64).reshape(shape)
        same(core.linear(x, s), x @ a.t())
        same(core.linear(x, s, bias), x @ a.t() + bias)
    for bad in (
        lambda: core.linear(core.ones(2, 3, dtype=core.float64), s),
        lambda: core.linear(core.tensor(1.0), s),
        lambda: core.linear(s, core.ones(2, 4, dtype=core.float64)),
        lambda: core.linear(core.ones(2, 4, dtype=core.float64), a, s),
    ):
        with pytest.raises(RuntimeError, match="linear"):
            bad()


def test_unsorted_and_many_rows() -> None:
    rng = np.random.default_rng(0)
    where, values = rng.integers(0, 300, (2, 5000)), rng.normal(size=5000)
    s = core.sparse_coo_tensor(where, values, (300, 300))
    b = core.tensor(rng.normal(size=(300, 17)))
    wanted = np.zeros((300, 300))
    np.add.at(wanted, tuple(where), values)
    np.testing.assert_allclose(s.to_dense().numpy(), wanted, atol=1e-10)
    np.testing.assert_allclose((s @ b).numpy(), wanted @ b.numpy(), atol=1e-9)
    np.testing.assert_allclose((s.to_sparse_csr() @ b).numpy(), wanted @ b.numpy(), atol=1e-9)


# --- slices ---


@pytest.mark.parametrize("layout", [COO, CSR])
def test_slices(layout: str) -> None:
    a = dense()
    s = as_layout(a, layout)
    for dim, index in [(0, [3, 1, 1, 4]), (1, [2, 0, 2]), (-1, []), (0, [0])]:
        number = core.tensor(index, dtype=core.int64)
        same(s.index_select(dim, number), a.index_select(dim, number))
    same(s[2], a[2])
    same(s[-1][1], a[-1][1])
    same(s.select(1, 3), a[:, 3])
    same(core.cat([s, s]), core.cat([a, a]))
    same(core.cat([s, s * 2], 1), core.cat([a, a * 2], 1))
    assert core.cat([s, s]).layout is s.layout
    with pytest.raises(IndexError):
        s.index_select(0, core.tensor([5]))
    with pytest.raises(IndexError):
        s[7]
    with pytest.raises(RuntimeError, match="cannot be joined"):
        core.cat([s, a])
    with pytest.raises(RuntimeError, match="equal shapes"):
        core.cat([s, as_layout(dense(3, 3), layout)])


def test_slices_of_hybrid() -> None:
    s = core.sparse_coo_tensor([[2, 0, 2]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (3, 2))
    a = s.to_dense()
    number = core.tensor([1, 1, 0])
    same(s.index_select(1, number), a.index_select(1, number))
    same(s.index_select(0, core.tensor([2, 2, 1])), a.index_select(0, core.tensor([2, 2, 1])))
    same(s[2], a[2])
    same(s.select(1, 0), a[:, 0])
    same(core.cat([s, s], 1), core.cat([a, a], 1))
    same(core.cat([s, s], 0), core.cat([a, a], 0))
    with pytest.raises(NotImplementedError, match="cannot be exchanged"):
        s.t()


@pytest.mark.parametrize("layout", [COO, CSR])
def test_stacks_and_dimensions_of_size_1(layout: str) -> None:
    a, b = dense(), dense(seed=4)
    s, t = as_layout(a, layout), as_layout(b, layout)
    for dim in (0, 1, 2, -1, -2):
        same(core.stack([s, t], dim), core.stack([a, b], dim))
        same(s.unsqueeze(dim), a.unsqueeze(dim))
    same(core.vstack([s, t]), core.vstack([a, b]))
    same(core.hstack([s, t]), core.hstack([a, b]))
    for dim in (0, -1):
        for row, want in zip(s.unbind(dim), a.unbind(dim), strict=True):
            same(row, want)
    assert [row.to_dense().tolist() for row in s] == a.tolist()
    same(s.narrow_copy(1, -3, 2), a.narrow_copy(1, -3, 2))
    with pytest.raises(IndexError, match=r"unsqueeze\(dim\)"):
        s.unsqueeze(3)
    with pytest.raises(RuntimeError, match="narrow_copy"):
        s.narrow_copy(0, 4, 2)
    with pytest.raises(RuntimeError, match="to_dense"):
        core.stack([s, b])


def test_stacks_of_hybrid() -> None:
    a = core.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 0.0]])
    s = a.to_sparse(1)
    assert [s.unsqueeze(dim).sparse_dim() for dim in (0, 1, 2)] == [2, 2, 1]
    for dim in (0, 1, 2):
        same(core.stack([s, 2 * s], dim), core.stack([a, 2 * a], dim))
        same(s.unsqueeze(dim), a.unsqueeze(dim))
    for dim in (0, 1, (0, 1)):
        same(s.sum(dim, keepdim=True), a.sum(dim, keepdim=True))


def test_slices_of_what_is_not_coalesced() -> None:
    s = uncoalesced()
    a = s.to_dense()
    for dim in (0, 1):
        for parts in ([s, s], [s, s.coalesce()], [s.coalesce(), s]):
            same(core.cat(parts, dim), core.cat([a, a], dim))
        same(s.index_select(dim, core.tensor([1, 0, 1])), a.index_select(dim, core.tensor([1, 0, 1])))
        same(s.select(dim, 1), a.select(dim, 1))


def test_masks_and_diagonals() -> None:
    a, b = dense(seed=1), dense(seed=2)
    wanted = core.where(b != 0, a, 0.0)
    for mask in (b.to_sparse(), b.to_sparse_csr()):
        same(a.sparse_mask(mask), wanted)
    same(a.to_sparse().sparse_mask(b.to_sparse()), wanted)
    same(core.zeros_like(a.to_sparse()).sparse_mask(b.to_sparse()), core.zeros_like(a))
    diagonals = core.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    made = sparse.spdiags(diagonals, core.tensor([0, 1]), (3, 3))
    assert made.to_dense().tolist() == [[1.0, 5.0, 0.0], [0.0, 2.0, 6.0], [0.0, 0.0, 3.0]]
    with pytest.raises(RuntimeError, match="twice"):
        sparse.spdiags(diagonals, core.tensor([1, 1]), (3, 3))


def test_dense_tensors_carry_no_mark() -> None:
    s = dense().to_sparse()
    for plain in (s.to_dense(), s._values(), s._indices(), s @ core.ones(4, 2, dtype=core.float64), s.sum()):
        assert plain.layout is core.strided
        plain.cos()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 2)])
def test_matrices_without_rows_columns_or_values(shape: tuple[int, int]) -> None:
    for a in (core.zeros(shape), core.ones(shape)):
        for layout in (COO, CSR):
            s = as_layout(a, layout)
            same(s, a)
            same(s @ core.ones(shape[1], 2), a @ core.ones(shape[1], 2))
            same(s.to_sparse_coo().t(), a.t())
            same(s.sum(), a.sum())


def test_methods_have_signatures_and_may_be_overridden() -> None:
    assert str(inspect.signature(core.Tensor.to_sparse)) == (
        "(self, /, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None)"
    )
    assert str(inspect.signature(core.Tensor.coalesce)) == "(self, /)"
    called = []

    class Recorded(core.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            called.append(func)
            return

    x = core.zeros(2, 3).as_subclass(Recorded)
    called.clear()
    assert x.to_sparse() is None
    assert x.sparse_dim() is None
    assert called == [core.Tensor.to_sparse, core.Tensor.sparse_dim]
