"""Moving tensors to shared memory, and what a message makes of them."""

from __future__ import annotations

import os

import pytest

import rushlight_core as core
import rushlight_multiprocessing as mp
from rushlight_multiprocessing.sharing import contiguous_stride, dense_stride, empty

DTYPES = [
    core.bool,
    core.uint8,
    core.int8,
    core.int16,
    core.int32,
    core.int64,
    core.float16,
    core.bfloat16,
    core.float32,
    core.float64,
]


def through_pipe(obj, gives=False):
    from rushlight_multiprocessing.connection import Pipe

    reader, writer = Pipe(duplex=False, gives=gives)
    with reader, writer:
        writer.send(obj)
        return reader.recv()


def test_share_memory_moves_in_place_and_keeps_values():
    t = core.arange(12.0).reshape(3, 4)
    assert not mp.is_shared(t)
    assert mp.share_memory_(t) is t
    assert mp.is_shared(t)
    assert mp.is_shared(t[1:])
    assert t.tolist() == core.arange(12.0).reshape(3, 4).tolist()
    address = t.data_ptr()
    mp.share_memory_(t)
    assert t.data_ptr() == address


def test_share_memory_keeps_the_order_of_dimensions():
    t = core.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    values, stride = t.tolist(), t.stride()
    mp.share_memory_(t)
    assert t.tolist() == values
    assert t.stride() == stride


def test_leaf_that_requires_grad_stays_one():
    t = core.ones(3, requires_grad=True)
    mp.share_memory_(t)
    assert t.requires_grad
    assert t.is_leaf
    assert mp.is_shared(t)


def test_result_that_requires_grad_is_refused():
    t = core.ones(3, requires_grad=True) * 2
    if not t.requires_grad:
        pytest.skip("needs rushlight-autograd")
    with pytest.raises(RuntimeError, match="detach"):
        mp.share_memory_(t)
    with pytest.raises(RuntimeError, match="detach"):
        through_pipe(t)
    with pytest.raises(RuntimeError, match="detach"):
        through_pipe(t, gives=True)


@pytest.mark.parametrize("gives", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_arrives(dtype, gives):
    t = core.tensor([[0, 1, 0], [1, 0, 1]], dtype=dtype)
    got = through_pipe(t, gives)
    assert got.dtype == dtype
    assert got.tolist() == t.tolist()


@pytest.mark.parametrize("size", [(), (0,), (3, 0, 2), (1,), (2, 1, 3)])
def test_every_size_arrives(size):
    t = core.ones(size)
    got = through_pipe(t)
    assert tuple(got.shape) == size
    assert got.tolist() == t.tolist()


def test_receiver_and_sender_see_the_same_memory():
    t = core.zeros(1000)
    got = through_pipe(t)
    got[3] = 7
    assert t[3].item() == 7
    t[4] = 8
    assert got[4].item() == 8


def test_given_tensors_are_copied():
    t = core.zeros(10_000)
    got = through_pipe(t, gives=True)
    got[3] = 7
    assert t[3].item() == 0
    assert not mp.is_shared(t)
    assert mp.is_shared(got)


def test_views_of_shared_memory_stay_views():
    base = mp.share_memory_(core.arange(20.0).reshape(4, 5))
    column, row, again = through_pipe((base[:, 2], base[1], base))
    assert column.tolist() == base[:, 2].tolist()
    assert column.stride() == (5,)
    column[1] = -1
    assert row[2].item() == -1
    assert again[1, 2].item() == -1
    assert base[1, 2].item() == -1


def test_expanded_tensor():
    t = mp.share_memory_(core.arange(3.0)).reshape(3, 1).expand(3, 4)
    assert through_pipe(t).tolist() == t.tolist()


def test_requires_grad_arrives():
    got = through_pipe(core.ones(2, requires_grad=True))
    assert got.requires_grad
    assert got.is_leaf


class Weight(core.Tensor):
    pass


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("gives", [False, True])
def test_subclass_and_its_attributes_arrive(gives, requires_grad):
    weight = core.ones(3).as_subclass(Weight).requires_grad_(requires_grad)
    weight.label = "first"
    got = through_pipe(weight, gives)
    assert got.requires_grad == requires_grad
    assert type(got) is Weight
    assert got.label == "first"
    assert got.tolist() == [1, 1, 1]


def test_other_objects_in_a_message():
    got = through_pipe({"t": [core.ones(2)], "n": 3, "s": "text"})
    assert got["n"] == 3
    assert got["s"] == "text"
    assert got["t"][0].tolist() == [1, 1]


def test_many_tensors_share_one_arena_and_few_descriptors(held):
    mp.share_memory_(core.ones(10))
    before = held.descriptors()
    tensors = [mp.share_memory_(core.full((1000,), float(i))) for i in range(500)]
    assert held.descriptors() - before <= 4
    assert all(t[0].item() == i for i, t in enumerate(tensors))


def test_memory_goes_round(held):
    mp.empty_cache()
    before = held.mappings()
    for i in range(50):
        t = mp.share_memory_(core.full((4 << 20,), float(i)))  # 16 MB each: 800 MB in all
        assert t[-1].item() == i
    del t
    assert held.mappings() - before <= 1
    mp.empty_cache()
    assert held.mappings() == before


def test_large_tensor_returns_its_pages():
    from rushlight_multiprocessing.arena import attached

    mp.empty_cache()
    keep = mp.share_memory_(core.ones(10))
    t = mp.share_memory_(core.ones(2 << 20))

    def resident() -> int:
        return sum(os.fstat(arena.locks).st_blocks * 512 for arena in attached.values())

    assert resident() >= 8 << 20
    del t
    assert resident() < 1 << 20
    assert keep.tolist() == [1] * 10


def test_empty_is_shared():
    t = empty((3, 4), core.float32)
    assert mp.is_shared(t)
    assert tuple(t.shape) == (3, 4)


def test_strides():
    assert contiguous_stride((2, 3, 4)) == (12, 4, 1)
    assert contiguous_stride((2, 0, 4)) == core.empty(2, 0, 4).stride()
    assert dense_stride((2, 3), (1, 20)) == (1, 2)


def test_sharing_strategy_names():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy("file_system")
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="strategy"):
        mp.set_sharing_strategy("post")
