"""Operators on shapes whose arguments have several forms, and in-place operators on shapes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import rushlight_core as rl


def test_broadcast_shapes() -> None:
    """An int is the shape of a vector; without arguments the result is the shape of a 0-d tensor."""
    assert rl.broadcast_shapes((2, 1), (3,), 1) == rl.Size([2, 3])
    assert rl.broadcast_shapes() == rl.Size([])
    assert rl.broadcast_shapes((0, 1), (1, 4)) == rl.Size([0, 4])
    with pytest.raises(
        RuntimeError, match=re.escape("(2, 3), (4,) do not broadcast: dimension 1 has sizes 3 and 4")
    ):
        rl.broadcast_shapes((2, 3), (4,))
    with pytest.raises(RuntimeError, match="negative"):
        rl.broadcast_shapes((-1,))


def test_einsum_takes_lists_of_dimensions() -> None:
    """Operands that are followed by lists of numbers give the same result as an equation with letters."""
    a, b = rl.randn(2, 3, 4), rl.randn(2, 4, 5)
    wanted = rl.einsum("bij,bjk->bik", a, b)
    assert rl.equal(rl.einsum(a, [0, 1, 2], b, [0, 2, 3], [0, 1, 3]), wanted)
    assert rl.equal(rl.einsum(a, [..., 1, 2], b, [..., 2, 3]), wanted)
    assert rl.equal(rl.einsum("bij,bjk->bik", [a, b]), wanted)
    # Numbers are sorted like letters: 26 is "a", which comes after "Z".
    assert rl.einsum(rl.zeros(2, 3), [26, 25]).shape == (3, 2)
    with pytest.raises(ValueError, match="0 to 51"):
        rl.einsum(a, [0, 1, 52])
    with pytest.raises(TypeError, match="list of dimensions"):
        rl.einsum(a, b)


def test_einsum_broadcasts_sizes_of_one() -> None:
    """As in PyTorch, sizes of one broadcast; NumPy does not broadcast them."""
    a, b = rl.randn(1, 3), rl.randn(4, 3)
    assert rl.allclose(rl.einsum("ij,ij->i", a, b), (a * b).sum(1))
    assert rl.allclose(rl.einsum("ij,ij", a, b), (a * b).sum())
    assert rl.einsum("i->i", rl.randn(1)).shape == (1,)


def test_einsum_contracts_the_smallest_result_first() -> None:
    """From left to right, the first product would have 10^12 elements; operands are contracted in a better order."""
    left, right, matrix = rl.ones(10**6), rl.ones(10**6), rl.ones(10**6, 1)
    assert rl.einsum("i,j,ik->jk", left, right, matrix).shape == (10**6, 1)


def test_tensordot_forms() -> None:
    """`dims` may be a number, two lists, or a tensor with either."""
    a, b = rl.randn(3, 4, 5), rl.randn(4, 5, 2)
    wanted = np.tensordot(a.numpy(), b.numpy(), 2)
    for dims in (2, ([1, 2], [0, 1]), rl.tensor(2), rl.tensor([[1, 2], [0, 1]]), [[-2, -1], [-3, -2]]):
        np.testing.assert_allclose(rl.tensordot(a, b, dims).numpy(), wanted, rtol=1e-5, atol=1e-5)
    out = rl.empty(3, 2)
    assert rl.tensordot(a, b, out=out) is out
    assert rl.tensordot(a, b, 0).shape == (3, 4, 5, 4, 5, 2)
    # A dimension of size one is multiplied by the sum over the other operand's dimension.
    one = rl.randn(3, 1)
    assert rl.allclose(rl.tensordot(one, a, ([1], [1])), rl.einsum("ij,klm->ikm", one, a), atol=1e-5)
    for dtype in (rl.int32, rl.uint8, rl.float16):  # the sum has the dtype of the operands
        two, six = rl.ones(2, 1, dtype=dtype), rl.ones(3, 2, dtype=dtype)
        assert rl.tensordot(two, six, ([1], [0])).equal(rl.full((2, 2), 3, dtype=dtype))
    with pytest.raises(RuntimeError, match="dims"):
        rl.tensordot(a, b, 4)
    with pytest.raises(RuntimeError, match="size 3"):
        rl.tensordot(a, b, 1 + 2)


def test_tensor_split_by_a_tensor() -> None:
    """A 0-d tensor is a number of sections; a vector holds positions."""
    x = rl.arange(5)
    assert [p.tolist() for p in rl.tensor_split(x, rl.tensor([1, 3]))] == [[0], [1, 2], [3, 4]]
    assert [p.tolist() for p in x.tensor_split(rl.tensor(2))] == [[0, 1, 2], [3, 4]]
    assert [p.tolist() for p in rl.hsplit(x, indices_or_sections=[2])] == [[0, 1], [2, 3, 4]]


@pytest.mark.parametrize("shape", [(3, 4), (7, 2), (9, 3), (3, 3, 3), (0, 2)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape: tuple[int, ...], wrap: bool) -> None:
    """The result equals that of NumPy's fill_diagonal."""
    x = rl.zeros(shape)
    wanted = np.zeros(shape)
    if wanted.size:
        np.fill_diagonal(wanted, 5, wrap)
    assert x.fill_diagonal_(5, wrap) is x
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_scatter_copies() -> None:
    """The result equals a clone after a write to its view."""
    x = rl.arange(12.0).reshape(3, 4)
    cases = [
        (lambda t, s: rl.diagonal_scatter(t, s, 1), lambda t: t.diagonal(1)),
        (lambda t, s: t.select_scatter(s, -1, 2), lambda t: t.select(-1, 2)),
        (lambda t, s: t.slice_scatter(s, 1, 0, None, 2), lambda t: t[:, ::2]),
        (lambda t, s: t.as_strided_scatter(s, (2, 2), (4, 1), 1), lambda t: t.as_strided((2, 2), (4, 1), 1)),
    ]
    for scatter, view in cases:
        wanted = x.clone()
        src = -rl.ones(view(wanted).shape)
        view(wanted).copy_(src)
        assert rl.equal(scatter(x, src), wanted)
    assert rl.equal(x, rl.arange(12.0).reshape(3, 4))


def test_questions_as_functions() -> None:
    """`is_floating_point(t)` and similar predicates."""
    x = rl.ones(2, 3)
    assert rl.is_floating_point(x)
    assert rl.is_signed(x)
    assert not rl.is_complex(x)
    assert rl.numel(x) == 6
    assert not rl.is_conj(x)
    assert not rl.is_neg(x)
    assert rl.is_same_size(x, rl.zeros(2, 3))
    assert rl.is_nonzero(rl.tensor([2]))
    assert not rl.is_nonzero(rl.tensor(0.0))
    assert rl.is_storage(x.untyped_storage())
    assert not rl.is_storage(x)
    with pytest.raises(TypeError, match="must be a Tensor"):
        rl.is_floating_point(1.0)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError):
        rl.is_nonzero(x)


def test_views_in_place() -> None:
    """In-place views change sizes and strides of the tensor itself; its memory does not change."""
    x = rl.arange(6.0).reshape(1, 2, 3)
    data = x.data_ptr()
    assert x.squeeze_() is x
    assert x.shape == (2, 3)
    x.transpose_(0, 1).unsqueeze_(-1)
    assert x.shape == (3, 2, 1)
    assert x.data_ptr() == data
    assert x.squeeze_(-1).swapaxes_(0, -1).t_().tolist() == [[0, 3], [1, 4], [2, 5]]
    part = x[1:]
    assert part.t_().tolist() == [[1, 2], [4, 5]]
    part.zero_()
    assert x.tolist() == [[0, 3], [0, 0], [0, 0]]
    with pytest.raises(IndexError):
        x.unsqueeze_(4)
    assert x.shape == (3, 2)


def test_empty_permuted() -> None:
    """The strides have the order of the physical layout."""
    assert rl.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)
    assert rl.empty_permuted((2, 3), (1, 0), dtype=rl.int64).stride() == (1, 2)
    assert rl.empty_permuted((), ()).shape == ()


def test_transposes_and_parts_as_attributes() -> None:
    """`H`, `mH`, `real`; a real tensor has no imaginary part."""
    x = rl.arange(6.0).reshape(2, 3)
    assert rl.equal(x.H, x.t())
    assert rl.equal(x.mH, x.mT)
    assert x.real is x
    with pytest.raises(RuntimeError, match="mH"):
        _ = x[None].H
    with pytest.raises(RuntimeError, match="complex"):
        _ = x.imag


def test_python_functions_of_elements() -> None:
    """`apply_` and `map_` write in place, for all strides."""
    x = rl.arange(4).reshape(2, 2).t()
    assert x.apply_(lambda v: v + 10) is x
    assert x.tolist() == [[10, 12], [11, 13]]
    assert x.map_(rl.tensor([1, 2]), lambda a, b: a * b).tolist() == [[10, 24], [11, 26]]
    with pytest.raises(RuntimeError, match="requires grad"):
        rl.ones(2, requires_grad=True).apply_(abs)


def test_parts_and_sums_of_sizes_are_sizes() -> None:
    size = rl.zeros(2, 3, 4).shape
    assert isinstance(size[1:], rl.Size)
    assert size[1:].numel() == 12
    assert size[-1] == 4
    assert type(size[-1]) is int
    assert isinstance(size + (5,), rl.Size)
    assert size + (5,) == (2, 3, 4, 5)
    assert isinstance(rl.Size([]) + (1, 2), rl.Size)
    assert (size[:1] * 3).numel() == 8
    assert repr(size[:0]) == "torch.Size([])"
    with pytest.raises(TypeError):
        size + [5]
    with pytest.raises(IndexError):
        size[3]


def test_sizes_hold_integers() -> None:
    """The elements of a Size are converted to Python's ints; elements that are not integers raise."""
    for given in ((2, rl.tensor(3)), (2, rl.tensor([3])), [True + 1, 3], rl.tensor([2, 3]), iter((2, 3))):
        size = rl.Size(given)
        assert size == (2, 3)
        assert all(type(n) is int for n in size)
    assert rl.Size((True,)) == (1,)
    for bad in ((2, 3.0), "ab", (None,), (rl.tensor(3.0),), (rl.tensor([1, 2]),)):
        with pytest.raises(TypeError, match="integers"):
            rl.Size(bad)
    both = (rl.tensor(4),) + rl.Size((2,))
    assert isinstance(both, rl.Size)
    assert all(type(n) is int for n in both)
    with pytest.raises(TypeError, match="integers"):
        rl.Size((2,)) + ("a",)
    with pytest.raises(TypeError):
        rl.Size((2,)) + [3]


def test_numbers_of_several_elements() -> None:
    """float(t) and similar functions raise ValueError, item() raises RuntimeError."""
    for shape in ((2,), (0,)):
        for convert in (float, int, complex):
            with pytest.raises(ValueError, match="cannot be converted to a Python number"):
                convert(rl.ones(shape))
        with pytest.raises(RuntimeError, match="cannot be converted to a Python number"):
            rl.ones(shape).item()
