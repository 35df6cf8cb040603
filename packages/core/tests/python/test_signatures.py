"""Calls that PyTorch takes under several names, in several orders, or with results given by the caller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight_core as core


def test_result_type_by_each_of_its_names() -> None:
    x = core.ones(2, dtype=core.float64)
    assert core.result_type(x, 1) is core.float64
    assert core.result_type(tensor=x, other=1) is core.float64
    assert core.result_type(scalar=1, tensor=x) is core.float64
    assert core.result_type(scalar1=1, scalar2=2.0) is core.float32
    with pytest.raises(TypeError, match="scalar1"):
        core.result_type(x, scalar=1)


def test_orders_of_strides_by_position() -> None:
    x = core.zeros(2, 3, 4, 5)
    y = x.contiguous(core.channels_last)
    assert y.is_contiguous(core.channels_last)
    assert not y.is_contiguous(core.contiguous_format)
    assert y.cpu(core.contiguous_format).is_contiguous()


def test_requires_grad_by_both_names() -> None:
    x = core.ones(2)
    assert x.requires_grad_(mode=True).requires_grad
    assert not x.requires_grad_(requires_grad=False).requires_grad


def test_subtract_takes_alpha_by_position() -> None:
    x = core.tensor([5.0])
    assert core.subtract(x, 2, 3).tolist() == [-1]
    assert x.subtract(2, alpha=3).tolist() == [-1]


def test_norm_by_name_and_number() -> None:
    x = core.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert core.norm(x).item() == core.norm(x, "fro").item() == core.norm(x, p=None).item() == 5
    assert core.norm(x, 1, 1).tolist() == [7, 0]
    assert x.norm("fro", 1, True, core.float64).dtype is core.float64


@pytest.mark.parametrize(
    ("name", "rest"), [("split_copy", (1,)), ("split_with_sizes_copy", ([1, 1],)), ("unbind_copy", ())]
)
def test_lists_are_written_to_out(name: str, rest: tuple[object, ...]) -> None:
    x = core.arange(6.0).view(2, 3)
    wanted = getattr(core, name)(x, *rest)
    outs = [core.empty(0), core.empty(0)]
    got = getattr(core, name)(x, *rest, out=outs)
    assert all(a is b for a, b in zip(got, outs, strict=True))
    assert [o.tolist() for o in outs] == [w.tolist() for w in wanted]
    with pytest.raises(RuntimeError, match="needs 2 tensors, got 1"):
        getattr(core, name)(x, *rest, out=[core.empty(0)])
    with pytest.raises(TypeError, match="sequence of Tensors"):
        getattr(core, name)(x, *rest, out=core.empty(0))


def test_products_in_float32_are_rounded_once() -> None:
    x, y = (core.randn(8, 64).to(core.bfloat16) for _ in range(2))
    wide = core.mm(x, y.t(), core.float32)
    assert wide.dtype is core.float32
    assert core.equal(wide, x.float() @ y.t().float())
    assert core.bmm(x[None], y.t()[None], out_dtype=core.float32).dtype is core.float32
    with pytest.raises(RuntimeError, match="out_dtype"):
        core.mm(x, y.t(), core.float64)


def test_complex_factors_of_products() -> None:
    a, b, c = (core.randn(3, 3, dtype=core.complex64) for _ in range(3))
    got = core.addmm(a, b, c, beta=2j, alpha=1 - 1j)
    assert core.allclose(got, 2j * a + (1 - 1j) * (b @ c))
    assert core.allclose(core.addmv(a[0], b, c[0], beta=1j), 1j * a[0] + b @ c[0])
    with pytest.raises(RuntimeError, match="complex"):
        core.addmm(a.real, b.real, c.real, alpha=1j)


def test_a_leaf_leaves_its_graph_in_place() -> None:
    x = core.ones(2).requires_grad_()
    assert x.detach_() is x
    assert not x.requires_grad
    assert not core.detach_(core.ones(2)).requires_grad


def test_hashes_are_those_of_the_bits() -> None:
    x = core.tensor([[1, 2], [4, 8]])
    assert core.hash_tensor(x).item() == 15
    assert core.hash_tensor(x, 1, keepdim=True).tolist() == [[3], [12]]
    assert core.hash_tensor(core.tensor([1.5], dtype=core.bfloat16)).item() == 4609434218613702656
    assert core.hash_tensor(core.zeros(0)).dtype is core.uint64


def test_sums_of_several_numbers() -> None:
    assert core.sym_sum(1, 2, 3) == core.sym_sum([1, 2, 3]) == 6
    assert core.sym_sum(4) == 4


def test_tensors_over_files(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    shared = core.from_file(path, True, 4)
    shared.copy_(core.arange(4.0))
    assert path.stat().st_size == 16
    own = core.from_file(str(path), shared=False, size=2)
    own.zero_()
    assert core.from_file(path, size=4).tolist() == [0, 1, 2, 3]
    assert core.from_file(path, size=2, dtype=core.int64).shape == (2,)
    with pytest.raises(ValueError, match="16 bytes"):
        core.from_file(path, size=5)
    with pytest.raises(ValueError, match="negative"):
        core.from_file(path, size=-1)


def test_keywords_in_any_order_and_their_other_names() -> None:
    x = core.tensor([[1.0, 2.0], [3.0, 5.0]])
    expected = [[3.0], [8.0]]
    for keywords in (
        {"dim": 1, "keepdim": True},
        {"keepdim": True, "dim": 1},
        {"keepdims": True, "axis": 1},
        {"dtype": core.float32, "keepdim": True, "dim": 1},
    ):
        assert core.sum(x, **keywords).tolist() == expected
        assert core.sum(**keywords, input=x).tolist() == expected


@pytest.mark.parametrize("keyword", ["di", "dims", "dim\0", "dím", "", "Dim"])
def test_keywords_that_resemble_a_name_are_unknown(keyword: str) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        core.sum(core.ones(2), **{keyword: 0})


def test_a_keyword_twice() -> None:
    with pytest.raises(TypeError, match="dim"):
        core.sum(core.ones(2), 0, dim=0)
    with pytest.raises(TypeError, match="dim"):
        core.sum(core.ones(2), dim=0, axis=0)


@pytest.mark.parametrize("call", [core.nonzero, core.Tensor.nonzero])
def test_nonzero_takes_only_bools_as_as_tuple(call: Any) -> None:
    x = core.tensor([0, 1])
    for wrong in (1, 0.0, "yes", None, []):
        with pytest.raises(TypeError, match="'as_tuple' must be bool"):
            call(x, as_tuple=wrong)
    assert call(x, as_tuple=np.bool_(True))[0].tolist() == [1]
    assert call(x, as_tuple=np.bool_(False)).tolist() == [[1]]


def test_nonzero_as_tuple_has_no_out() -> None:
    with pytest.raises(TypeError, match="out"):
        core.nonzero(core.tensor([0, 1]), as_tuple=True, out=core.empty(0, dtype=core.int64))
