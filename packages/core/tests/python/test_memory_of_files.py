"""Storages over files and over parts of memory, and the names of dtypes and layouts that no tensor has."""

from __future__ import annotations

import pickle
import random
import zlib
from pathlib import Path

import pytest

import rushlight_core as rl


def test_a_file_is_memory(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(bytes(range(16)))
    storage = rl.UntypedStorage.from_file(str(file), nbytes=12)
    assert storage.nbytes() == 12
    assert storage[3] == 3
    part = storage[4:12]
    assert isinstance(part, rl.UntypedStorage)
    tensor = rl.asarray(part, dtype=rl.uint8).view(dtype=rl.int32)
    assert tensor.tolist() == [0x07060504, 0x0B0A0908]
    tensor.zero_()  # visible only in this process
    assert rl.asarray(storage)[4:].tolist() == [0] * 8
    assert file.read_bytes() == bytes(range(16))
    assert storage.untyped() is storage
    with pytest.raises(RuntimeError, match=r"got 20, .* has 16 bytes"):
        rl.UntypedStorage.from_file(file, nbytes=20)
    with pytest.raises(RuntimeError, match="steps"):
        storage[::2]
    assert storage[5:5].nbytes() == 0


def test_a_file_that_is_shared_is_written(tmp_path: Path) -> None:
    file = tmp_path / "shared"
    tensor = rl.asarray(rl.UntypedStorage.from_file(file, shared=True, nbytes=4))
    tensor.fill_(7)
    assert file.read_bytes() == b"\7\7\7\7"


def test_a_part_keeps_the_memory() -> None:
    part = rl.arange(4, dtype=rl.uint8).untyped_storage()[1:3]
    assert rl.asarray(part).tolist() == [1, 2]


def test_storages_that_are_not_shared() -> None:
    t = rl.ones(3)
    assert not t.untyped_storage().is_shared()
    assert not t.storage().is_shared()


def test_a_storage_moves_to_other_memory() -> None:
    t = rl.arange(6.0)
    part, array, target = t[2:4], t.numpy(), rl.zeros(10)
    address = t.data_ptr()
    t.untyped_storage()._move_to(target.untyped_storage())
    assert t.data_ptr() == target.data_ptr() != address
    target[2] = -1
    assert part.tolist() == [-1, 3]
    assert target.tolist() == [0, 1, -1, 3, 4, 5, 0, 0, 0, 0]
    del target, t
    assert part.tolist() == [-1, 3]  # `part` keeps the new memory alive
    assert array.tolist() == [0, 1, 2, 3, 4, 5]  # the array keeps the old memory alive
    with pytest.raises(ValueError, match="4 bytes, but 24 are needed"):
        part.untyped_storage()._move_to(rl.ones(1).untyped_storage())
    with pytest.raises(ValueError, match="itself"):
        part.untyped_storage()._move_to(part.untyped_storage())
    with pytest.raises(RuntimeError, match="CPU"):
        part.untyped_storage()._move_to(rl.ones(9, device="meta").untyped_storage())
    with pytest.raises(TypeError, match="UntypedStorage"):
        part.untyped_storage()._move_to(part)


def test_a_storage_moves_to_memory_that_has_its_bytes() -> None:
    t, target = rl.arange(3.0), rl.tensor([7.0, 8.0, 9.0])
    t.untyped_storage()._move_to(target.untyped_storage(), True)
    assert t.tolist() == [7, 8, 9]
    with pytest.raises(TypeError, match="takes 1 or 2 arguments, got 0"):
        t.untyped_storage()._move_to()


def test_dtypes_and_layouts_that_no_tensor_has() -> None:
    assert repr(rl.complex32) == "torch.complex32"
    assert rl.complex32 != rl.complex64
    assert rl.float4_e2m1fn_x2.is_floating_point
    assert rl.qint8.is_signed
    assert not rl.quint8.is_signed
    assert rl.chalf is rl.complex32
    assert pickle.loads(pickle.dumps(rl.sparse_coo)) is rl.sparse_coo != rl.ones(1).layout
    for make in (
        lambda: rl.ones(2, dtype=rl.complex32),
        lambda: rl.ones(2).to(rl.complex32),
        lambda: rl.zeros_like(rl.ones(2), dtype=rl.complex32),
    ):
        with pytest.raises(TypeError, match=r"tensors of dtype torch\.complex32 are not supported\nhint: "):
            make()
    with pytest.raises(TypeError):
        rl.finfo(rl.qint8)
    with pytest.raises(NotImplementedError, match="strided"):
        rl.ones(2, layout=rl.sparse_csr)


def test_memory_grows_in_place() -> None:
    tensor = rl.tensor([1, 2], dtype=rl.int32)
    view = tensor[1:]
    storage = tensor.untyped_storage()
    assert storage.resize_(16) is storage
    assert storage.nbytes() == 16
    assert (tensor.tolist(), view.tolist()) == ([1, 2], [2])
    view.resize_(3)[1:] = 7  # the memory that exists now is sufficient
    assert storage.nbytes() == 16
    assert storage.resize_(16) is storage
    with pytest.raises(NotImplementedError, match="16 bytes cannot be resized to 0"):
        storage.resize_(0)
    with pytest.raises(RuntimeError, match="at least 0"):
        storage.resize_(-1)
    with pytest.raises(TypeError, match="must be an int"):
        storage.resize_(1.5)
    array = tensor.numpy()
    with pytest.raises(RuntimeError, match="NumPy"):
        storage.resize_(64)
    assert array.tolist() == [1, 2]
    typed = rl.ones(2).storage()
    assert typed.resize_(3) is typed
    assert (len(typed), typed.nbytes()) == (3, 12)


def test_storages_have_an_identity() -> None:
    tensor = rl.ones(4)
    assert tensor.untyped_storage()._cdata == tensor[2:].untyped_storage()._cdata
    assert tensor.untyped_storage()._cdata != rl.ones(4).untyped_storage()._cdata


def test_checksums_are_those_of_zip_archives() -> None:
    """Data of lengths around the block sizes of the fast algorithm, at several alignments, in one piece and in two."""
    data = random.Random(0).randbytes(70_000)
    for begin in (0, 1, 7, 16):
        for size in (*range(200), 4095, 4096, 4097, 69_000):
            part = memoryview(data)[begin : begin + size]
            wanted = zlib.crc32(part)
            assert rl._C._crc32(part) == wanted, (begin, size)
            for cut in (size // 3, size // 2):
                assert rl._C._crc32(part[cut:], rl._C._crc32(part[:cut])) == wanted, (begin, size, cut)
    assert rl._C._crc32(b"123456789") == 0xCBF43926  # the check value in catalogues of CRCs
    with pytest.raises(TypeError):
        rl._C._crc32("text")
    with pytest.raises(BufferError):
        rl._C._crc32(memoryview(data)[::2])
