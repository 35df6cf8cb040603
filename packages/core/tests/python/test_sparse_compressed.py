"""Matrices in the compressed sparse layouts: parts, conversions, and operators compared with dense matrices."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core import sparse

LAYOUTS = ["coo", "csr", "csc", "bsr", "bsc"]
COMPRESSED = LAYOUTS[1:]


def dense(seed: int = 3) -> core.Tensor:
    """Return a matrix (6, 8) of 2x4 blocks, two of which are empty."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(6, 8)) * (rng.random((6, 8)) < 0.6)
    values[:2, :4] = values[4:, 4:] = 0
    return core.tensor(values, dtype=core.float64)


def in_layout(t: core.Tensor, layout: str, block: tuple[int, int] = (2, 4)) -> core.Tensor:
    convert = getattr(t, f"to_sparse_{layout}")
    return convert(block) if layout.startswith("b") else convert()


def same(a: core.Tensor, b: core.Tensor) -> None:
    a, b = a.to_dense(), b.to_dense()
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)


def test_parts() -> None:
    t = core.tensor([[0, 0, 1, 2], [0, 0, 0, 3], [4, 0, 0, 0], [5, 6, 0, 7]])
    csc = t.to_sparse_csc()
    assert csc.layout is core.sparse_csc
    assert (csc.ccol_indices().tolist(), csc.row_indices().tolist()) == (
        [0, 2, 3, 4, 7],
        [2, 3, 3, 0, 0, 1, 3],
    )
    assert csc.values().tolist() == [4, 5, 6, 1, 2, 3, 7]
    bsr = t.to_sparse_bsr((2, 2))
    assert bsr.layout is core.sparse_bsr
    assert (bsr.crow_indices().tolist(), bsr.col_indices().tolist()) == ([0, 1, 3], [1, 0, 1])
    assert bsr.values().tolist() == [[[1, 2], [0, 3]], [[4, 0], [5, 6]], [[0, 0], [0, 7]]]
    bsc = t.to_sparse(layout=core.sparse_bsc, blocksize=(2, 2))
    assert bsc.layout is core.sparse_bsc
    assert (bsc.ccol_indices().tolist(), bsc.row_indices().tolist()) == ([0, 1, 3], [1, 0, 1])
    assert bsc.values().tolist() == [[[4, 0], [5, 6]], [[1, 2], [0, 3]], [[0, 0], [0, 7]]]
    for s in (csc, bsr, bsc):
        assert (s.is_sparse, s.is_sparse_csr, s.shape, s.sparse_dim()) == (False, False, (4, 4), 2)
        same(s, t)
    assert (csc._nnz(), bsr._nnz()) == (7, 3)
    for s, name in ((csc, "crow_indices"), (bsr, "row_indices"), (t, "ccol_indices"), (bsc, "_indices")):
        with pytest.raises(RuntimeError, match=f"{name} expected sparse .* layout but got"):
            getattr(s, name)()


@pytest.mark.parametrize("block", [(1, 1), (2, 4), (3, 2), (6, 8)])
@pytest.mark.parametrize("to", LAYOUTS)
@pytest.mark.parametrize("origin", ["plain", *LAYOUTS])
def test_conversions(origin: str, to: str, block: tuple[int, int]) -> None:
    t = dense()
    source = t if origin == "plain" else in_layout(t, origin)
    found, direct = in_layout(source, to, block), in_layout(t, to, block)
    same(found, t)
    assert found.layout is direct.layout is getattr(core, f"sparse_{to}")
    if to != "coo":  # conversions between block layouts may keep more zeros
        for name in (
            ("crow_indices", "col_indices") if to in ("csr", "bsr") else ("ccol_indices", "row_indices")
        ):
            indices = getattr(found, name)()
            assert indices.dtype == core.int64
            if origin == "plain" or not origin.startswith("b"):
                assert core.equal(indices, getattr(direct, name)())
        assert found.values().dim() == (3 if to.startswith("b") else 1)


def test_conversions_that_are_refused() -> None:
    t = dense()
    with pytest.raises(RuntimeError, match=r"blocks of \(4, 4\) do not divide"):
        t.to_sparse_bsr((4, 4))
    with pytest.raises(RuntimeError, match="blocksize"):
        t.to_sparse(layout=core.sparse_bsr)
    with pytest.raises(RuntimeError, match="blocksize"):
        t.to_sparse(layout=core.sparse_csc, blocksize=(2, 2))
    with pytest.raises(RuntimeError, match="sparse layout"):
        t.to_sparse(layout="torch.mkldnn")
    assert t.to_sparse(layout=core.strided) is t
    for argument in ({"sparse_dim": 1}, {"blocksize": (2, 2)}, {"dense_dim": 0}):
        with pytest.raises(
            RuntimeError, match=rf"{next(iter(argument))}\): must be None for layout torch.strided"
        ):
            t.to_sparse(layout=core.strided, **argument)
    with pytest.raises(NotImplementedError, match="dense_dim"):
        t.to_sparse_csc(dense_dim=1)
    with pytest.raises(NotImplementedError, match="needs a matrix"):
        core.ones(2, 2, 2).to_sparse_csc()


def test_makers() -> None:
    for layout in COMPRESSED:
        s = in_layout(dense(), layout)
        names = (
            ("crow_indices", "col_indices") if layout in ("csr", "bsr") else ("ccol_indices", "row_indices")
        )
        parts = [getattr(s, name)() for name in names] + [s.values()]
        for made in (
            getattr(core, f"sparse_{layout}_tensor")(*parts, s.shape),
            core.sparse_compressed_tensor(*parts, s.shape, layout=s.layout),
            core.sparse_compressed_tensor(*(part.tolist() for part in parts), layout=s.layout, dtype=s.dtype),
        ):
            assert made.layout is s.layout
            same(made, s)
    with pytest.raises(RuntimeError, match="must be compressed"):
        core.sparse_compressed_tensor([0, 1], [0], [1.0], layout=core.sparse_coo)


@pytest.mark.parametrize(
    ("maker", "first", "second", "values", "size", "text"),
    [
        ("csc", [0, 1], [0], [1.0], (1, 2), r"ccol_indices\): needs ncols \+ 1 = 3"),
        ("csc", [0, 1, 1], [3], [1.0], (2, 2), r"row_indices\): index 3 is out of range"),
        ("csc", [1, 1, 1], [0], [1.0], (2, 2), r"`ccol_indices\[..., 0\] == 0` is not satisfied"),
        ("csc", [0, 2, 2], [1, 0], [1.0, 2.0], (2, 2), "row_indices.*sorted"),
        ("bsr", [0, 1], [0], np.ones((1, 2, 2)), (3, 2), r"blocks of \(2, 2\) do not divide"),
        ("bsr", [0, 1], [1], np.ones((1, 2, 2)), (2, 2), r"col_indices\): index 1 is out of range"),
        ("bsr", [0, 1], [0, 1], np.ones((1, 2, 2)), (2, 4), "same nnz"),
        ("bsc", [0, 1, 1], [0], np.ones((1, 0, 2)), (0, 4), "do not divide"),
    ],
)
def test_bad_parts(maker: str, first: Any, second: Any, values: Any, size: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        getattr(core, f"sparse_{maker}_tensor")(first, second, core.tensor(values), size)


def test_blocks_need_three_dimensions() -> None:
    with pytest.raises(NotImplementedError, match="values must have three"):
        core.sparse_bsr_tensor([0, 1], [0], [1.0], (1, 1))
    with pytest.raises(NotImplementedError, match="values must have one dimension"):
        core.sparse_csc_tensor([0, 1], [0], [[1.0]], (1, 1))


@pytest.mark.parametrize("layout", COMPRESSED)
def test_printing_and_copies(layout: str) -> None:
    s = in_layout(dense(), layout)
    names = ("crow_indices", "col_indices") if layout in ("csr", "bsr") else ("ccol_indices", "row_indices")
    text = repr(s)
    assert re.match(rf"tensor\({names[0]}=tensor\(\[ *0, ", text)
    assert f"{names[1]}=tensor([" in text
    assert f"layout=torch.sparse_{layout})" in text
    for other in (s.clone(), s.detach(), pickle.loads(pickle.dumps(s)), s.to(core.float32).double()):
        assert other.layout is s.layout
        assert other.values().shape == s.values().shape
    same(pickle.loads(pickle.dumps(s)), s)
    zeros = core.zeros_like(s)
    assert (zeros.layout, zeros._nnz(), zeros.shape) == (s.layout, 0, s.shape)
    same(zeros, core.zeros_like(dense()))
    same(zeros.copy_(s), s)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operators(layout: str) -> None:
    a, b = dense(1), dense(2)
    s, t = in_layout(a, layout), in_layout(b, layout)
    for result, wanted in [
        (s + t, a + b),
        (s - s, a - a),
        (s * 3, a * 3),
        (-s, -a),
        (s.sin(), a.sin()),
        (s * t, a * b),
        (s * b, a * b),
        (s.sum(), a.sum()),
        (sparse.sum(s, 1), a.sum(1)),
        (s.index_select(0, core.tensor([5, 0, 1, 1])), a[[5, 0, 1, 1]]),
        (core.cat([s, t]), core.cat([a, b])),
        (s[3], a[3]),
    ]:
        same(result, wanted)
    assert (s * t).layout is (s + t).layout is s.layout
    transposed = {"coo": "coo", "csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr"}
    same(s.t(), a.t())
    assert s.t().layout is getattr(core, f"sparse_{transposed[layout]}")
    assert s.t().t().layout is s.layout
    same(core.permute(s, (0, 1)), a)
    mask = (a != 0).double()  # blocks also store zeros, which the mask removes
    same(b.sparse_mask(s) * mask, b * mask)
    same(t.sparse_mask(s) * mask, b * mask)


def test_masks_of_blocks() -> None:
    pattern = core.sparse_bsr_tensor([0, 1, 2], [1, 0], core.ones(2, 1, 2), (2, 4))
    a = core.arange(8.0).reshape(2, 4)
    assert a.sparse_mask(pattern).values().tolist() == [[[2, 3]], [[4, 5]]]
    assert a.to_sparse().sparse_mask(pattern).values().tolist() == [[[2, 3]], [[4, 5]]]
    assert core.zeros(2, 4).to_sparse().sparse_mask(pattern).values().tolist() == [[[0, 0]], [[0, 0]]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_and_out(layout: str) -> None:
    a, b, x = dense(1), dense(2).t().contiguous(), dense(4)[0]
    s, start = in_layout(a, layout), core.ones(6, 6, dtype=core.float64)
    products = {
        "mm": ((s, b), a @ b),
        "matmul": ((s, b), a @ b),
        "mv": ((s, x), a @ x),
        "addmm": ((start, s, b), start + a @ b),
        "addmv": ((start[0], s, x), start[0] + a @ x),
    }
    for name, (arguments, wanted) in products.items():
        function = getattr(core, name)
        same(function(*arguments), wanted)
        out = core.zeros_like(wanted)
        assert function(*arguments, out=out) is out
        same(out, wanted)
        grown = core.empty(0, dtype=core.float64)
        function(*arguments, out=grown)
        same(grown, wanted)
        with pytest.raises(RuntimeError, match=r"\(out\): needs layout torch.strided"):
            function(*arguments, out=s)
    same(core.addmm(start, s, b, beta=2, alpha=-1), 2 * start - a @ b)
    same(b @ s, b @ a)
    square = in_layout(b.contiguous(), layout, (4, 2))
    product = s @ square
    same(product, a @ b)
    out = core.zeros_like(product)
    assert core.mm(s, square, out=out) is out
    same(out, a @ b)
    with pytest.raises(RuntimeError, match=r"mm\(out\): needs layout"):
        core.mm(s, square, out=core.empty(6, 6, dtype=core.float64))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_addmm_needs_one_dtype(layout: str) -> None:
    s, b = in_layout(dense(), layout), dense().t()
    with pytest.raises(RuntimeError, match=r"addmm\(input, mat1\): must have the same dtype"):
        core.addmm(core.ones(6, 6), s, b)
