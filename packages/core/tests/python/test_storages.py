"""UntypedStorage and TypedStorage: making, reading, writing, copying and converting the memory of tensors."""

from __future__ import annotations

import copy
import struct
import sys

import pytest

import rushlight_core as core


def bytes_of(*numbers: float) -> list[int]:
    return list(struct.pack(f"={len(numbers)}f", *numbers))


def test_the_constructor_takes_a_size_or_values() -> None:
    assert core.UntypedStorage().nbytes() == 0
    assert core.UntypedStorage(3).nbytes() == 3
    assert core.UntypedStorage(3, device="meta").device.type == "meta"
    assert core.UntypedStorage([1, 2, 300]).tolist() == [1, 2, 44]
    assert core.UntypedStorage((-1,)).tolist() == [255]
    for wrong in ("a", [1.5], 2.5, -1, core.tensor([1])):
        with pytest.raises(RuntimeError, match=r"UntypedStorage\(size\)"):
            core.UntypedStorage(wrong)
    with pytest.raises(TypeError):
        core.UntypedStorage(1, 2)


def test_bytes_are_read_and_written_at_an_index() -> None:
    x = core.tensor([1.0, 2.0])
    storage = x.untyped_storage()
    assert storage.tolist() == list(storage) == bytes_of(1.0, 2.0)
    assert storage[-1] == storage[7]
    storage[3] = 64
    assert x[0].item() == struct.unpack("=f", bytes([0, 0, 128, 64]))[0]
    storage[0] = -1
    storage[1:3] = 257
    assert storage.tolist()[:3] == [255, 1, 1]
    storage[5:5] = 9
    part = storage[4:8]
    part[0] = 7
    assert storage[4] == 7
    for index in (8, -9):
        with pytest.raises(IndexError, match="out of range for 8 bytes"):
            storage[index]
        with pytest.raises(RuntimeError, match="out of range for 8 bytes"):
            storage[index] = 1
    for wrong in ("a", True, 1.0, core.tensor(1)):
        with pytest.raises(TypeError, match="must be an int or a slice"):
            storage[wrong]
    for value in (1.5, "a", [1, 2]):
        with pytest.raises(RuntimeError, match="must be ints"):
            storage[0] = value
    with pytest.raises(RuntimeError, match="steps other than 1"):
        storage[0:4:2] = 1


def test_writes_are_noticed_by_autograd_s_versions() -> None:
    x = core.zeros(2)
    storage = x.untyped_storage()
    for write in (
        lambda: storage.fill_(1),
        lambda: storage.copy_(core.UntypedStorage(8)),
        lambda: storage.__setitem__(0, 1),
        lambda: storage.byteswap(core.float32),
        lambda: x.storage().fill_(2.0),
    ):
        before = x._version
        write()
        assert x._version > before


def test_fill_copy_and_clone() -> None:
    x = core.tensor([3.0, 4.0])
    storage, other = core.UntypedStorage(8), x.untyped_storage()
    assert storage.fill_(258) is storage
    assert storage.tolist() == [2] * 8
    assert storage.copy_(other, non_blocking=True) is storage
    assert storage.tolist() == other.tolist()
    assert core.UntypedStorage(8).copy_(x.storage()).tolist() == other.tolist()
    for made in (other.clone(), copy.copy(other), copy.deepcopy(other)):
        assert made.tolist() == other.tolist()
        assert made.data_ptr() != other.data_ptr()
    with pytest.raises(RuntimeError, match=r"fill_\(value\)"):
        storage.fill_(1.5)
    with pytest.raises(RuntimeError, match="size does not match"):
        storage.copy_(core.UntypedStorage(4))
    with pytest.raises(TypeError, match="must be a storage, got Tensor"):
        storage.copy_(x)


def test_conversions_have_new_memory() -> None:
    storage = core.UntypedStorage([0, 1, 200])
    names = "bool byte char short int long half bfloat16 float double complex_float complex_double"
    for name in names.split():
        made = getattr(storage, name)()
        want = core.tensor([0, 1, 200], dtype=core.uint8).to(made.dtype)
        assert made.tolist() == want.tolist()
        assert getattr(made, name)().tolist() == want.tolist()
        made.fill_(0)
        assert storage.tolist() == [0, 1, 200]
    assert storage.double().dtype == core.float64
    assert storage.half().int().dtype == core.int32


def test_typed_storages_are_written_and_copied() -> None:
    x = core.tensor([1.0, 2.0])
    storage = x.storage()
    twin = storage.clone()
    assert storage.fill_(5).tolist() == x.tolist() == [5, 5]
    assert twin.tolist() == [1, 2]
    assert storage.copy_(twin) is storage
    assert x.tolist() == [1, 2]
    assert storage.cpu().data_ptr() == storage.data_ptr()
    assert not storage.is_cuda
    assert storage.get_device() is None
    with pytest.raises(RuntimeError, match="size does not match"):
        storage.copy_(core.zeros(3).storage())


def test_the_order_of_bytes_is_reversed_in_each_number() -> None:
    storage = core.tensor([1.0, 2.0]).untyped_storage()
    storage.byteswap(core.float32)
    assert storage.tolist() == bytes_of(1.0)[::-1] + bytes_of(2.0)[::-1]
    storage.byteswap(core.complex64)  # a complex number is two numbers
    assert storage.tolist() == bytes_of(1.0, 2.0)
    with pytest.raises(RuntimeError, match="not a multiple of 2"):
        core.UntypedStorage(3).byteswap(core.int16)
    with pytest.raises(RuntimeError, match="must be a dtype"):
        storage.byteswap("float32")


def test_a_storage_is_made_of_a_buffer() -> None:
    make = core.UntypedStorage.from_buffer
    data = bytearray(b"abcdefgh")
    assert bytes(make(data, dtype=core.uint8)) == b"abcdefgh"
    assert bytes(make(data, "native", 2, 3, dtype=core.int8)) == b"de"
    other = "big" if sys.byteorder == "little" else "little"
    assert bytes(make(data, byte_order=other, dtype=core.int32)) == b"dcbahgfe"
    assert bytes(make(data, byte_order=sys.byteorder, count=2, offset=2, dtype=core.int16)) == b"cdef"
    copied = make(data, dtype=core.uint8)
    data[0] = 0
    assert copied[0] == ord("a")
    for error, arguments in (
        (RuntimeError, {}),
        (ValueError, {"byte_order": "middle"}),
        (ValueError, {"byte_order": "native", "count": 5}),
        (ValueError, {"byte_order": "native", "offset": 9}),
        (ValueError, {"byte_order": "native", "offset": 1}),
    ):
        with pytest.raises(error):
            make(data, dtype=core.int16, **arguments)
    with pytest.raises(TypeError):
        make(3, dtype=core.uint8)


def test_the_attributes_of_a_storage_on_the_cpu() -> None:
    storage = core.UntypedStorage([1, 2])
    assert storage.to(device="cpu") is storage
    assert storage.cpu() is storage
    assert storage.to(device="meta").device.type == "meta"
    assert storage.new().nbytes() == 0
    assert storage.element_size() == 1
    assert storage.get_device() is None
    assert not storage.is_cuda
    assert not storage.is_sparse
    assert not storage.is_pinned()
