"""Tensors whose memory is replaced: which elements are kept, which tensors see the new memory, and which calls raise."""

from __future__ import annotations

import pytest

import rushlight_core as core


def test_memory_grows_and_keeps_its_elements() -> None:
    x = core.arange(6.0)
    head = x[:2]
    same = x.resize_(2, 2)
    assert same is x
    assert x.tolist() == [[0, 1], [2, 3]]
    x.resize_((3, 4))
    assert x.reshape(-1)[:6].tolist() == [0, 1, 2, 3, 4, 5]
    x.fill_(7)
    assert head.tolist() == [7, 7]  # `head` views the same memory
    assert x.resize_(()).tolist() == 7
    assert x.resize_as_(core.zeros(5, 1)).shape == (5, 1)
    assert x.resize_(0, 3).shape == (0, 3)
    assert core.zeros(2, 3, 4, 5).resize_(1, 2, 3, 4, memory_format=core.channels_last).stride() == (
        24,
        1,
        8,
        2,
    )


def test_the_same_shape_keeps_its_strides() -> None:
    x = core.arange(6).view(2, 3).t()
    assert x.resize_(3, 2).tolist() == x.resize_as_(core.zeros(3, 2)).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.stride() == (1, 3)
    last = core.zeros(1, 2, 3, 4).contiguous(memory_format=core.channels_last)
    assert last.resize_as_(core.zeros(1, 2, 3, 4)).stride() == (24, 1, 8, 2)
    assert last.resize_(1, 2, 3, 4, memory_format=core.contiguous_format).stride() == (24, 12, 4, 1)


def test_the_format_of_another_tensor() -> None:
    last = core.zeros(1, 2, 3, 4).contiguous(memory_format=core.channels_last)
    for like, stride in ((last, (24, 1, 8, 2)), (last.contiguous(), (24, 12, 4, 1))):
        assert core.zeros(5).resize_as_(like, memory_format=core.preserve_format).stride() == stride
        assert last.clone().resize_as_(like, memory_format=core.preserve_format).stride() == stride
    transposed = core.zeros(2, 3).t()
    assert core.zeros(5).resize_as_(transposed, memory_format=core.preserve_format).stride() == (2, 1)
    with pytest.raises(RuntimeError, match="must not be preserve_format"):
        last.resize_(5, memory_format=core.preserve_format)


def test_a_format_of_other_dimensions_is_refused() -> None:
    x = core.arange(4.0)
    for resize in (x.resize_, lambda *size, **given: x.resize_as_(core.zeros(size), **given)):
        with pytest.raises(
            RuntimeError, match=r"resize_\(memory_format\): channels_last is for tensors of 4"
        ):
            resize(2, 2, memory_format=core.channels_last)
    assert x.tolist() == [0, 1, 2, 3]


def test_a_view_begins_where_it_did() -> None:
    x = core.arange(6.0)
    assert x[2:].resize_(2).tolist() == [2, 3]
    assert x[4:].resize_(3)[:2].tolist() == [4, 5]
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_set() -> None:
    x, y = core.zeros(3), core.arange(6.0)
    x.set_(y)
    assert x.data_ptr() == y.data_ptr()
    assert x.shape == (6,)
    x.set_(y, 1, (2, 2))
    assert x.tolist() == [[1, 2], [3, 4]]
    x.set_(y, 0, (2,), (5,))
    x[1] = 9
    assert y[5] == 9
    view = y[2:]
    view.set_(core.ones(2))
    view.zero_()
    assert y.tolist() == [0, 1, 2, 3, 4, 9]
    assert x.set_().shape == (0,)


def test_refusals_leave_everything_as_it_was() -> None:
    x = core.ones(3, requires_grad=True)
    y = core.arange(3.0)
    held = y.numpy()
    for refused in (
        lambda: x.resize_(4),
        lambda: x.set_(y),
        lambda: y.set_(x),
        lambda: y.resize_(4),
        lambda: y.set_(core.arange(3)),
        lambda: y.set_(y, 2, (2,)),
        lambda: y.set_(y, 0, (2,), (2**62,)),
        lambda: y.resize_(2**62, 8),
        lambda: y.resize_(-1),
    ):
        with pytest.raises(RuntimeError):
            refused()
    with pytest.raises(MemoryError):
        core.zeros(2).resize_(2**45)
    assert x.tolist() == [1, 1, 1]
    assert y.tolist() == held.tolist() == [0, 1, 2]


def test_meta() -> None:
    x = core.empty(2, 3, device="meta")
    assert x.resize_(2**40, 4).shape == (2**40, 4)


def test_set_of_storages() -> None:
    x = core.arange(6.0)
    for storage in (x.untyped_storage(), x.storage()):
        assert core.empty(0).set_(storage).tolist() == [0, 1, 2, 3, 4, 5]
        assert core.empty(0).set_(storage, 1, (2, 2)).tolist() == [[1, 2], [3, 4]]
        seen = core.empty(0).set_(source=storage, storage_offset=0, size=(2,), stride=(4,))
        assert seen.tolist() == [0, 4]
        seen[0] = 9
        assert x[0] == 9
        x[0] = 0
        for bad in ((5, (2,)), (0, (2,), (6,)), (-1, (1,))):
            with pytest.raises(RuntimeError):
                seen.set_(storage, *bad)
    assert core.empty(0, dtype=core.uint8).set_(x.untyped_storage()).shape == (24,)
    with pytest.raises(RuntimeError, match="must have the tensor's dtype"):
        core.empty(0, dtype=core.int32).set_(x.storage())
    with pytest.raises(TypeError, match="must be a Tensor or a storage, got list"):
        x.set_([1.0])
