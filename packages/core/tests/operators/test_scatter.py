"""Writing at scattered places: the same whatever the threads, and nothing is written where an index is bad."""

from __future__ import annotations

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


def test_in_place_through_a_strided_view() -> None:
    x = core.zeros(3, 4)
    x.t().index_copy_(0, core.tensor([3, 1]), core.ones(2, 3))
    x[:, 0].put_(core.tensor([-1]), core.tensor([5.0]))
    x[:, 2].scatter_reduce_(0, core.tensor([1, 1]), core.tensor([2.0, 3.0]), "sum")
    assert x.tolist() == [[0, 1, 0, 1], [0, 1, 5, 1], [5, 1, 0, 1]]


def test_indices_out_of_range_are_named_by_the_operator_that_was_called() -> None:
    x = core.zeros(3, 4)
    with pytest.raises(IndexError, match=r"take_along_dim\(indices\): 4 is out of range for size 4"):
        core.take_along_dim(x, core.tensor([[4]]), 1)
    with pytest.raises(IndexError, match=r"take_along_dim\(indices\): -13 is out of range for size 12"):
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
    """An index without dimensions covers one element of src, also where src has more."""
    got = core.scatter_reduce(core.zeros(4), 0, core.tensor(1), core.tensor([5.0, 6.0]), "sum")
    assert got.tolist() == [0, 5, 0, 0]


def test_unsigned_integers_add_up() -> None:
    """index_add of the unsigned dtypes, which wrap around."""
    for dtype in (core.uint16, core.uint32, core.uint64):
        x = core.tensor([1, 2], dtype=dtype)
        assert core.index_add(x, 0, core.tensor([1, 1]), x).tolist() == [1, 5]
