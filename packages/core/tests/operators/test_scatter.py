"""Scattered writes: results do not depend on the number of threads, and nothing is written if an index is invalid."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_threads_change_nothing(reduce: str) -> None:
    core.manual_seed(0)
    x, src = core.randn(50, 70), core.randn(4000, 70)
    index = core.randint(0, 50, (4000, 70))
    before, results = core.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 8):
            core.set_num_threads(threads)
            results.append(x.scatter_reduce(0, index, src, reduce, include_self=False).tolist())
    finally:
        core.set_num_threads(before)
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize(
    ("error", "write"),
    [
        (IndexError, lambda x, at: x.put_(at, core.ones(2))),
        (IndexError, lambda x, at: x.index_copy_(0, at, core.ones(2))),
        (IndexError, lambda x, at: x.index_fill_(0, at, 1)),
        (IndexError, lambda x, at: x.index_reduce_(0, at, core.ones(2), "prod")),
        (RuntimeError, lambda x, at: x.scatter_reduce_(0, at, core.ones(2), "sum")),
        (RuntimeError, lambda x, at: x.scatter_(0, at, core.ones(2), reduce="add")),
        (RuntimeError, lambda x, at: x.scatter_(0, at, core.ones(2))),
        (RuntimeError, lambda x, at: x.scatter_(0, at, 1.0)),
        (RuntimeError, lambda x, at: x.scatter_add_(0, at, core.ones(2))),
        (IndexError, lambda x, at: x.index_add_(0, at, core.ones(2))),
        (IndexError, lambda x, at: x.index_put_([at], core.ones(2))),
        (IndexError, lambda x, at: x.index_put_([at], core.ones(2), accumulate=True)),
    ],
)
def test_a_bad_index_writes_nothing(error: type[Exception], write) -> None:  # type: ignore[no-untyped-def]
    x = core.zeros(3)
    with pytest.raises(error, match=r"index 7 is out of range .* 3"):
        write(x, core.tensor([0, 7]))
    assert x.tolist() == [0, 0, 0]
    assert x._version == 0


def test_too_little_source_writes_nothing() -> None:
    x = core.zeros(3)
    with pytest.raises(RuntimeError, match="3 true elements"):
        x.masked_scatter_(core.tensor([True, True, True]), core.ones(2))
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [core.int64, core.uint64])
def test_numbers_are_written_in_full(dtype: core.dtype) -> None:
    number = 2**60 + 1
    at = core.tensor([1])
    for x in (
        core.zeros(3, dtype=dtype).scatter_(0, at, number),
        core.zeros(3, dtype=dtype).index_fill_(0, at, number),
    ):
        assert x.tolist() == [0, number, 0]


def test_an_index_that_is_written_is_read_before() -> None:
    def numbers() -> core.Tensor:
        return core.tensor([1, 2, 3, 0])

    ones = core.full((4,), 3)
    for write in (
        lambda x: x.scatter_(0, x, ones),
        lambda x: x.scatter_(0, x, 3),
        lambda x: x.put_(x, ones),
        lambda x: x.index_copy_(0, x, ones),
        lambda x: x.index_fill_(0, x, 3),
        lambda x: x.index_put_([x], ones),
        lambda x: x.scatter_reduce_(0, x, ones, "amax", include_self=False),
    ):
        assert write(numbers()).tolist() == [3, 3, 3, 3]
    for add in (
        lambda x: x.scatter_add_(0, x, ones),
        lambda x: x.index_add_(0, x, ones),
        lambda x: x.index_put_([x], ones, accumulate=True),
        lambda x: x.put_(x, ones, accumulate=True),
    ):
        assert add(numbers()).tolist() == [4, 5, 6, 3]
    x = numbers()
    assert x.scatter_(0, core.tensor([3, 2, 1, 0]), x).tolist() == [0, 3, 2, 1]
    assert numbers().index_add_(0, core.tensor([0, 0]), x[:2], alpha=2).tolist() == [7, 2, 3, 0]


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("shape", [(), (2,), (2, 3), (0, 2)])
def test_masks_without_dimensions(chosen: bool, shape: tuple[int, ...]) -> None:
    """0-d masks select everything or nothing, also together with other indices."""
    x = np.arange(float(np.prod(shape))).reshape(shape)
    mask = core.tensor(chosen)
    index: list[tuple[list[core.Tensor | None], tuple[object, ...]]] = [([mask], (chosen,))]
    if shape and shape[0]:
        last = core.tensor([1])
        index += [
            ([mask, last], (chosen, [1])),
            ([last, mask], ([1], chosen)),
            ([None, mask], (slice(None), chosen)),
        ]
    for given, same in index:
        written, added = x.copy(), x.copy()
        written[same] = 7
        np.add.at(added, same, 7)
        for accumulate, expected in ((False, written), (True, added)):
            t = core.tensor(x)
            assert t.index_put_(given, core.tensor(7.0), accumulate=accumulate) is t
            np.testing.assert_array_equal(t.numpy(), expected)
            put = core.tensor(x).index_put(given, core.tensor(7.0), accumulate=accumulate)
            np.testing.assert_array_equal(put.numpy(), expected)


DTYPES = [core.bool, core.uint8, core.int16, core.int32, core.float64, core.complex128]


def drawn(shape: tuple[int, ...], dtype: core.dtype) -> core.Tensor:
    return core.randint(0, 2 if dtype == core.bool else 50, shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 1000, 300_000])
@pytest.mark.parametrize("strided", [False, True])
def test_many_indices(dtype: core.dtype, size: int, strided: bool) -> None:
    """More indices than are checked in one block, into tensors larger than the caches; also through a strided view."""
    core.manual_seed(0)
    n = 5000
    at = core.randint(0, size, (n,))
    i = at.numpy()
    signed = at - size * core.randint(0, 2, (n,))
    x = drawn((size, 2), dtype)[:, 0] if strided else drawn((size,), dtype)
    values, old = drawn((n,), dtype), x.numpy().copy()
    for got in (x.gather(0, at), x.take(signed), x[signed], x.index_select(0, at)):
        np.testing.assert_array_equal(got.numpy(), old[i])
    written = old.copy()
    written[i] = values.numpy()
    for write in (
        lambda t: t.scatter_(0, at, values),
        lambda t: t.put_(signed, values),
        lambda t: t.index_put_([signed], values),
        lambda t: t.index_copy_(0, at, values),
    ):
        np.testing.assert_array_equal(write(x.clone()).numpy(), written)
    added = old.copy()
    np.add.at(added, i, values.numpy())
    for add in (
        lambda t: t.scatter_add_(0, at, values),
        lambda t: t.put_(signed, values, accumulate=True),
        lambda t: t.index_put_([signed], values, accumulate=True),
        lambda t: t.index_add_(0, at, values),
    ):
        np.testing.assert_array_equal(add(x.clone()).numpy(), added)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 20, 33, 300, 3000])
def test_slices_of_any_width(width: int) -> None:
    core.manual_seed(0)
    at = core.randint(0, 40, (90,))
    x, source = core.randn(40, width, dtype=core.float64), core.randn(90, width, dtype=core.float64)
    i = at.numpy()
    for t in (x, core.cat([x, x], 1)[:, :width], x.t().contiguous().t()):
        assert core.equal(t[at], x[at])
        np.testing.assert_array_equal(t.index_select(0, at).numpy(), x.numpy()[i])
        np.testing.assert_array_equal(t.t().index_select(1, at).numpy(), x.numpy()[i].T)
        written, added = x.numpy().copy(), x.numpy().copy()
        written[i] = source.numpy()
        np.add.at(added, i, source.numpy() * 3)
        assert t.clone().index_copy_(0, at, source).numpy().tolist() == written.tolist()
        np.testing.assert_allclose(t.clone().index_add_(0, at, source, alpha=3).numpy(), added)
        written[i] = 2
        assert t.clone().index_fill_(0, at - 40, 2).numpy().tolist() == written.tolist()


def test_in_place_through_a_strided_view() -> None:
    x = core.zeros(3, 4)
    x.t().index_copy_(0, core.tensor([3, 1]), core.ones(2, 3))
    x[:, 0].put_(core.tensor([-1]), core.tensor([5.0]))
    x[:, 2].scatter_reduce_(0, core.tensor([1, 1]), core.tensor([2.0, 3.0]), "sum")
    assert x.tolist() == [[0, 1, 0, 1], [0, 1, 5, 1], [5, 1, 0, 1]]


def test_indices_out_of_range_are_named_by_the_operator_that_was_called() -> None:
    x = core.zeros(3, 4)
    with pytest.raises(IndexError, match=r"take_along_dim\(indices\): index 4 is out of range for size 4"):
        core.take_along_dim(x, core.tensor([[4]]), 1)
    with pytest.raises(IndexError, match=r"take_along_dim\(indices\): index -13 is out of range for size 12"):
        core.take_along_dim(x, core.tensor([0, -13]))
    with pytest.raises(IndexError, match=r"index_fill_\(index\): (index )?9 is out of range"):
        x.index_fill_(0, core.tensor([9]), core.tensor(1.0))


def test_as_strided_in_place() -> None:
    x = core.arange(6)
    assert x.as_strided_((2, 2), (1, 3), 1) is x
    assert x.tolist() == [[1, 4], [2, 5]]
    with pytest.raises(RuntimeError, match="as_strided"):
        x.as_strided_((9,), (1,))


def test_map2() -> None:
    x = core.tensor([1.0, 2.0])
    assert x.map2_(core.tensor([10.0]), core.tensor([3.0, 4.0]), lambda a, b, c: a + b * c) is x
    assert x.tolist() == [31.0, 42.0]


def test_a_single_index_takes_the_first_of_the_source() -> None:
    """A 0-d index uses only the first element of src, even if src has more."""
    got = core.scatter_reduce(core.zeros(4), 0, core.tensor(1), core.tensor([5.0, 6.0]), "sum")
    assert got.tolist() == [0, 5, 0, 0]


def test_unsigned_integers_add_up() -> None:
    """index_add of unsigned dtypes, which wrap around."""
    for dtype in (core.uint16, core.uint32, core.uint64):
        x = core.tensor([1, 2], dtype=dtype)
        assert core.index_add(x, 0, core.tensor([1, 1]), x).tolist() == [1, 5]


COUNT = 4096  # counting up to this number in steps of 1 is impossible in half precision
ADDING = {
    "scatter_add": lambda x, at, src: x.scatter_add_(0, at, src),
    "scatter": lambda x, at, src: x.scatter_(0, at, src, reduce="add"),
    "scatter_reduce sum": lambda x, at, src: x.scatter_reduce_(0, at, src, "sum"),
    "scatter_reduce mean": lambda x, at, src: x.scatter_reduce_(
        0, at, src * COUNT, "mean", include_self=False
    ),
    "index_add": lambda x, at, src: x.index_add_(0, at[:, 0], src),
    "index_add alpha": lambda x, at, src: x.index_add_(0, at[:, 0], src * 0.5, alpha=2),
    "index_reduce mean": lambda x, at, src: x.index_reduce_(
        0, at[:, 0], src * COUNT, "mean", include_self=False
    ),
    "index_put": lambda x, at, src: x.index_put_((at[:, 0],), src, accumulate=True),
    "index_put elements": lambda x, at, src: x.index_put_((at, core.arange(3)), src, accumulate=True),
    "put": lambda x, at, src: x.put_(at * 3 + core.arange(3), src, accumulate=True),
}


@pytest.mark.parametrize("layout", ["dense", "strided"])
@pytest.mark.parametrize("dtype", [core.float16, core.bfloat16])
@pytest.mark.parametrize("name", ADDING)
def test_sums_in_half_precision_are_rounded_once(name: str, dtype: core.dtype, layout: str) -> None:
    base = core.zeros((3, 2) if layout == "strided" else (2, 3), dtype=dtype)
    x = base.t() if layout == "strided" else base
    at, src = core.ones(COUNT, 1, dtype=core.int64).expand(COUNT, 3), core.ones(COUNT, 3, dtype=dtype)
    ADDING[name](x, at, src)
    assert x.tolist() == [[0.0] * 3, [float(COUNT)] * 3]


@pytest.mark.parametrize("dtype", [core.float16, core.bfloat16])
def test_a_product_in_half_precision_is_rounded_once(dtype: core.dtype) -> None:
    factor = core.tensor(1.0 + 2.0**-7, dtype=dtype)
    x = core.ones(1, dtype=dtype).scatter_reduce_(
        0, core.zeros(64, dtype=core.int64), factor.expand(64), "prod"
    )
    assert x.item() == core.tensor(factor.item() ** 64, dtype=dtype).item()
