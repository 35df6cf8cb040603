"""Predicates of dtypes, memory and strides, and the methods that change them."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core

# --- view(dtype) ---


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float64", "uint64"])
def test_the_same_bytes_as_another_dtype(dtype: str) -> None:
    array = np.arange(48, dtype=np.float32).reshape(3, 4, 4)
    for a, x in ((array, core.from_numpy(array)), (array[1:, ::2], core.from_numpy(array)[1:, ::2])):
        seen = x.view(getattr(core, dtype))
        np.testing.assert_array_equal(seen.numpy(), a.view(dtype))
        assert seen.data_ptr() == x.data_ptr()


def test_writes_are_seen_by_both() -> None:
    x = core.zeros(2)
    bits = x.view(core.int32)
    before = x._version
    bits[1] = 0x3F800000
    assert x.tolist() == [0.0, 1.0]
    assert x._version == bits._version > before


def test_what_has_no_other_dtype() -> None:
    assert core.ones(()).view(core.int32).shape == ()
    for make in (
        lambda: core.ones(3).view(core.float64),
        lambda: core.ones(4)[1:3].view(core.float64),
        lambda: core.ones(()).view(core.int16),
        lambda: core.ones(2, 4).t().view(core.int16),
        lambda: core.ones(3, 3)[:, :2].view(core.int64),
    ):
        with pytest.raises(RuntimeError, match=r"view\(dtype\): .*float32"):
            make()


def test_strides_of_no_elements_need_not_fit() -> None:
    assert core.empty(2, 0)[:, ::2].as_strided((0, 2), (1, 3)).view(core.float64).shape == (0, 1)
    assert core.empty(0, 1, dtype=core.bfloat16)[:, :0].view(core.int32).shape == (0, 0)
    with pytest.raises(RuntimeError, match=r"view\(dtype\): .*the last size"):
        core.empty(0, 3).view(core.float64)


def test_bytes_become_bools_where_they_are_0_or_1() -> None:
    x = core.tensor([[0, 1], [1, 0]], dtype=core.uint8)
    assert x.view(core.bool).tolist() == [[False, True], [True, False]]
    with pytest.raises(RuntimeError, match="other than 0 and 1"):
        (x * 2).view(core.bool)


def test_another_dtype_is_outside_of_the_graph() -> None:
    x = core.ones(2, requires_grad=True)
    assert not x.view(core.int32).requires_grad
    assert x.view(core.int32)._base is None


def test_readonly_memory_stays_so() -> None:
    array = np.ones(2, np.float32)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        core.from_numpy(array).view(core.int32).zero_()


# --- memory formats ---


def test_channels_last() -> None:
    x = core.arange(120).reshape(2, 3, 4, 5)
    y = x.contiguous(memory_format=core.channels_last)
    assert y.stride() == (60, 1, 15, 3)
    assert bool((x == y).all())
    assert y.is_contiguous(memory_format=core.channels_last)
    assert not y.is_contiguous()
    assert not x.is_contiguous(memory_format=core.channels_last)
    assert y.contiguous(memory_format=core.channels_last) is y
    assert y.contiguous().stride() == x.stride()
    for same in (
        x.to(memory_format=core.channels_last),
        x.clone(memory_format=core.channels_last),
        core.zeros_like(x, memory_format=core.channels_last),
        y.clone(),
        y + 1,
        y.double(),
    ):
        assert same.stride() == y.stride()
    assert y.clone(memory_format=core.contiguous_format).stride() == x.stride()


def test_channels_last_3d() -> None:
    x = core.arange(240).reshape(2, 3, 4, 5, 2)
    y = x.contiguous(memory_format=core.channels_last_3d)
    assert y.stride() == (120, 1, 30, 6, 3)
    assert bool((x == y).all())


def test_formats_that_do_not_fit() -> None:
    x = core.zeros(2, 3)
    assert not x.is_contiguous(memory_format=core.channels_last)
    assert x.is_contiguous(memory_format=core.preserve_format)
    with pytest.raises(
        RuntimeError, match=r"channels_last is for tensors of 4 dimensions, got shape \(2, 3\)"
    ):
        x.contiguous(memory_format=core.channels_last)
    with pytest.raises(ValueError, match="got 'sideways'"):
        x.clone(memory_format="sideways")


# --- type, device, memory ---


def test_type() -> None:
    x = core.ones(2)
    assert x.type() == "torch.FloatTensor"
    assert x.type(core.int64).dtype is core.int64
    assert x.type("torch.ByteTensor").dtype is core.uint8
    assert x.type(core.float32) is x
    assert core.typename(x.long()) == "torch.LongTensor"
    with pytest.raises(ValueError, match=r"got 'torch\.WordTensor'"):
        x.type("torch.WordTensor")
    with pytest.raises(TypeError, match="not int"):
        x.type(3)


def test_memory() -> None:
    x = core.arange(6, dtype=core.int16)
    assert (x.element_size(), x.nbytes, x[2:].storage_offset(), x.untyped_storage().nbytes()) == (
        2,
        12,
        2,
        12,
    )
    assert x[2:].untyped_storage().data_ptr() == x.data_ptr()
    assert x.view(2, 3).is_set_to(x.reshape(2, 3))
    assert not x[1:].is_set_to(x[:-1])
    assert x.get_device() == -1
    assert (x.is_signed(), x.bool().is_signed(), x.byte().is_signed()) == (True, False, False)
    assert core.tensor([2]).is_nonzero()
    assert not x.is_pinned()
    with pytest.raises(RuntimeError, match="hint"):
        x.pin_memory()
    assert x.new_tensor([1.0]).dtype is core.int16


# --- uint16, uint32, uint64 ---

WIDE = ["uint16", "uint32", "uint64"]


@pytest.mark.parametrize("name", WIDE)
def test_unsigned_integers(name: str) -> None:
    top = int(np.iinfo(name).max)
    array = np.array([0, 1, 250, top], name)
    x = core.tensor(array.tolist(), dtype=getattr(core, name))
    assert x.tolist() == array.tolist()
    assert x[3].item() == top
    assert core.from_numpy(array).dtype is x.dtype
    np.testing.assert_array_equal(core.from_dlpack(x).numpy(), array)
    np.testing.assert_array_equal(x.to(core.float64).numpy(), array.astype(np.float64))
    np.testing.assert_array_equal(x.to(core.int64).numpy(), array.astype(np.int64))
    np.testing.assert_array_equal((~x & 255 | x ^ 1).numpy(), ~array & 255 | array ^ 1)
    np.testing.assert_array_equal((x >> 1).numpy(), array >> 1)
    assert (x == 250).tolist() == [False, False, True, False]
    assert (x < 250).tolist() == [True, True, False, False]
    assert core.cat([x[:1], x[2:]]).tolist() == [0, 250, top]
    assert x[x != 0].tolist() == [1, 250, top]
    assert core.full((2,), 7, dtype=x.dtype).tolist() == [7, 7]
    assert x.clone().fill_(3).tolist() == [3] * 4
    assert str(top) in repr(x)
    assert int(x[3]) == x[3].__index__() == top
    assert float(x[3]) == float(top)


@pytest.mark.parametrize("name", WIDE)
def test_what_unsigned_integers_refuse(name: str) -> None:
    dtype = getattr(core, name)
    for value in (-1, int(np.iinfo(name).max) + 1):
        with pytest.raises(RuntimeError, match="does not fit"):
            core.tensor([value], dtype=dtype)


def test_large_floats_become_large_integers() -> None:
    x = core.tensor([2.0**63, 2.0**64 - 2**12, 3.5], dtype=core.float64)
    assert x.to(core.uint64).tolist() == [2**63, 2**64 - 2**12, 3]
    assert x.float()[:1].to(core.uint64).tolist() == [2**63]


def test_no_dtype_holds_uint64_and_int64() -> None:
    x = core.tensor([1], dtype=core.uint64)
    with pytest.raises(RuntimeError, match="promotion of uint64 and int64"):
        x.eq(core.tensor([1]))
    with pytest.raises(RuntimeError, match="-1 does not fit dtype uint64"):
        x.eq(-1)


def test_a_view_is_known() -> None:
    x = core.ones(3)
    assert not x._is_view()
    assert x[1:]._is_view()
    assert x.t()._is_view()
    assert not x.clone()._is_view()


def test_storages_are_recognised() -> None:
    x = core.ones(2)
    assert core.is_storage(x.untyped_storage())
    assert core.is_storage(x.storage())
    assert not core.is_storage(x)
