"""Moving tensors to shared memory, and sending them."""

from __future__ import annotations

import os

import pytest

import rushlight_core as core
import rushlight_multiprocessing as mp
from rushlight_multiprocessing.sharing import contiguous_stride, empty

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
    core.float8_e4m3fn,
    core.float8_e5m2,
    core.float8_e4m3fnuz,
    core.float8_e5m2fnuz,
    core.float8_e8m0fnu,
]


def through_pipe(obj, copy=False):
    from rushlight_multiprocessing.pipes import Pipe

    reader, writer = Pipe(duplex=False, copy=copy)
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
        through_pipe(t, copy=True)


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_arrives(dtype, copy):
    t = core.tensor([[0, 1, 0], [1, 0, 1]], dtype=dtype)
    got = through_pipe(t, copy)
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
    got = through_pipe(t, copy=True)
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


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("n", [20, 5000])
def test_tensors_over_one_storage_arrive_as_aliases(copy, n):
    b = core.arange(float(n))
    part, whole, column, bits = through_pipe([b[2:4], b, b.view(-1, 10)[:, 3], b.view(core.int32)[:3]], copy)
    assert whole.tolist() == b.tolist()
    assert column.tolist() == b.view(-1, 10)[:, 3].tolist()
    whole[3] = -1
    assert part.tolist() == [2, -1]
    assert column[0].item() == -1
    whole[2] = 1
    assert bits[2].item() == 0x3F800000
    assert part.untyped_storage() is whole.untyped_storage()
    assert (b[3].item() == -1) is not copy  # moved, or copied


def test_view_that_is_sent_alone_shares_the_whole_storage():
    b = core.zeros(100)
    part = through_pipe(b[10:20])
    assert mp.is_shared(b)
    part[0] = 5
    assert b[10].item() == 5


def test_views_of_one_flat_buffer():
    flat = core.zeros(30)
    views = [flat[i * 10 : i * 10 + 10].view(2, 5) for i in range(3)]
    *got, buffer = through_pipe([*views, flat])
    buffer.copy_(core.arange(30.0))
    assert got[2].tolist() == [[20, 21, 22, 23, 24], [25, 26, 27, 28, 29]]


def test_parts_of_a_large_storage_are_given_by_themselves():
    big = core.arange(1 << 20)
    mp.empty_cache()
    a, b = through_pipe([big[5:6000], big[10_000:20_000]], copy=True)
    assert a.tolist() == big[5:6000].tolist()
    assert b.tolist() == big[10_000:20_000].tolist()
    assert a.untyped_storage().nbytes() + b.untyped_storage().nbytes() == 8 * 15_995


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("n", [3, 2000])
def test_expanded_tensor_is_not_materialized(copy, n):
    t = core.arange(float(n)).reshape(n, 1).expand(n, 1000)
    got = through_pipe(t, copy)
    assert got.stride() == t.stride()
    assert got.untyped_storage().nbytes() == 4 * n
    assert got[:, 7].tolist() == t[:, 7].tolist()


@pytest.mark.parametrize("copy", [False, True])
def test_overlapping_windows(copy):
    t = core.arange(4000.0).as_strided((1000, 8), (3, 1))
    got = through_pipe(t, copy)
    assert got.tolist() == t.tolist()
    assert got.stride() == (3, 1)


def test_storages():
    t = core.zeros(10)
    storage = t.untyped_storage()
    assert not storage.is_shared()
    assert storage.share_memory_() is storage
    assert storage.is_shared()
    assert t.is_shared()
    assert t[3:].storage().is_shared()
    got, tensor = through_pipe([storage, t])
    tensor.fill_(1)
    assert t.tolist() == [1] * 10
    assert got is tensor.untyped_storage()
    empty_storage = core.empty(0).untyped_storage()
    assert through_pipe(empty_storage.share_memory_()).nbytes() == 0
    u = core.ones(3)
    assert u.storage().share_memory_().is_shared()
    assert u.is_shared()


@pytest.mark.parametrize("n", [10, 10_000])
def test_a_storage_that_is_given(n):
    storage = core.full((n,), 3, dtype=core.uint8).untyped_storage()
    got = through_pipe(storage, copy=True)
    assert bytes(got) == b"\3" * n
    assert not storage.is_shared()


def test_arrays_over_memory_that_was_moved():
    t = core.arange(1000.0)
    array = t.numpy()
    address = t.data_ptr()
    t.share_memory_()
    assert t.data_ptr() != address
    more = [core.zeros(1000) for _ in range(10)]
    assert array.tolist() == list(range(1000))  # the array keeps the old memory allocated
    del more


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_sparse_tensors_arrive(layout, copy):
    n = 2000  # large enough for shared memory
    plain = core.eye(n) * 2
    sparse = plain.to_sparse(
        layout=getattr(core, f"sparse_{layout}"), blocksize=(2, 2) if layout == "bsr" else None
    ).requires_grad_()
    arrived = through_pipe([sparse, sparse], copy)[0]
    assert (arrived.layout, arrived.requires_grad, arrived.shape) == (sparse.layout, True, (n, n))
    assert core.equal(arrived.detach().to_dense(), plain)
    # Both tensors use the same memory for their parts, unless the parts were sent with copy=True.
    with core.no_grad():
        core._C._sparse_parts(arrived)[3].zero_()
    assert bool(core._C._sparse_parts(sparse)[3].any()) is copy
    product = sparse * 2
    if product.requires_grad:  # only with rushlight-autograd
        with pytest.raises(RuntimeError, match="not a leaf"):
            through_pipe(product, copy)


def test_requires_grad_arrives():
    got = through_pipe(core.ones(2, requires_grad=True))
    assert got.requires_grad
    assert got.is_leaf


class Weight(core.Tensor):
    pass


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("copy", [False, True])
def test_subclass_and_its_attributes_arrive(copy, requires_grad):
    weight = core.ones(3).as_subclass(Weight).requires_grad_(requires_grad)
    weight.label = "first"
    got = through_pipe(weight, copy)
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


def test_sharing_strategy_names():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy("file_system")
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="strategy"):
        mp.set_sharing_strategy("post")
