"""Exchange with NumPy through DLPack, in both directions."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import rushlight_core as core

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (1, 4, 1)])
def test_round_trip(name: str, shape: tuple[int, ...]) -> None:
    a = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(name)
    t = core.from_dlpack(a)
    assert t.dtype is getattr(core, name)
    assert tuple(t.shape) == shape
    assert t.tolist() == a.tolist()
    back = np.from_dlpack(t)
    assert back.dtype == a.dtype
    assert back.tolist() == a.tolist()
    if a.size:
        assert back.ctypes.data == a.ctypes.data


def test_strides_and_writes_are_shared() -> None:
    a = np.arange(12.0).reshape(3, 4)
    t = core.from_dlpack(a[:, ::2])
    t[0, 1] = 50
    assert a[0, 2] == 50
    back = np.from_dlpack(core.arange(6).view(2, 3)[:, 1:])
    assert back.tolist() == [[1, 2], [4, 5]]


def test_tensors_exchange_among_themselves() -> None:
    t = core.arange(3)
    assert core.from_dlpack(t).data_ptr() == t.data_ptr()
    assert core.from_dlpack(t.__dlpack__()).tolist() == [0, 1, 2]
    b = core.from_dlpack(core.zeros(2, dtype=core.bfloat16))
    assert b.dtype is core.bfloat16
    assert t.__dlpack_device__() == (1, 0)


def test_memory_lives_as_long_as_somebody_looks_at_it() -> None:
    a = np.arange(4.0)
    alive = weakref.ref(a)
    t = core.from_dlpack(a)
    del a
    assert alive() is not None
    assert t.tolist() == [0, 1, 2, 3]
    del t
    assert alive() is None

    t = core.arange(1000)
    n = np.from_dlpack(t)
    storage = weakref.ref(t.untyped_storage())
    del t
    assert storage() is None  # the Python object is gone, but not the memory
    assert n.tolist() == list(range(1000))


def test_a_capsule_is_used_once() -> None:
    capsule = core.arange(3).__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    core.from_dlpack(capsule)
    assert "used_dltensor_versioned" in repr(capsule)
    with pytest.raises(BufferError, match="used already"):
        core.from_dlpack(capsule)


def test_an_unused_capsule_gives_its_memory_back() -> None:
    t = core.zeros(3)
    capsule = t.__dlpack__()
    assert not t.untyped_storage().resizable()
    del capsule
    assert t.untyped_storage().resizable()


def test_versions() -> None:
    t = core.arange(3)
    assert "versioned" not in repr(t.__dlpack__())
    assert "versioned" not in repr(t.__dlpack__(max_version=(0, 8)))
    assert "versioned" in repr(t.__dlpack__(max_version=(1, 3)))


def test_read_only() -> None:
    a = np.arange(3.0)
    a.flags.writeable = False
    t = core.from_dlpack(a)
    assert t._read_only
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    again = core.from_dlpack(t)
    assert again._read_only
    assert again.data_ptr() == t.data_ptr()
    assert not np.from_dlpack(t).flags.writeable


def test_copies() -> None:
    t = core.arange(3)
    copied = core.from_dlpack(t, copy=True)
    assert copied.data_ptr() != t.data_ptr()
    assert core.from_dlpack(t, copy=False).data_ptr() == t.data_ptr()
    assert core.from_dlpack(t, device="cpu").data_ptr() == t.data_ptr()


def test_exports_are_refused_by_the_standard() -> None:
    t = core.zeros(2)
    with pytest.raises(BufferError, match="requires grad"):
        core.zeros(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="meta"):
        core.zeros(2, device="meta").__dlpack__()
    with pytest.raises(BufferError, match="no streams"):
        t.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"device \(2, 0\)"):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="stream"):
        t.__dlpack__(stream="fast")
    with pytest.raises(TypeError, match="max_version"):
        t.__dlpack__(max_version=1)
    with pytest.raises(TypeError, match="copy"):
        t.__dlpack__(copy=2)


def test_imports_are_refused() -> None:
    with pytest.raises(TypeError, match="list has no __dlpack__"):
        core.from_dlpack([1])
    with pytest.raises(BufferError, match="negative"):
        core.from_dlpack(np.arange(3)[::-1])
    with pytest.raises(BufferError):
        core.from_dlpack(np.array([None]))

    class Liar:
        def __dlpack__(self, **kwargs: Any) -> Any:
            return 3

    with pytest.raises(TypeError, match="returned int"):
        core.from_dlpack(Liar())

    class Broken:
        def __dlpack__(self, **kwargs: Any) -> Any:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        core.from_dlpack(Broken())
    with pytest.raises(BufferError, match="holds no array"):
        import _datetime

        core.from_dlpack(_datetime.datetime_CAPI)


def test_producers_of_the_first_standard() -> None:
    class Old:
        def __dlpack__(self, stream: Any = None) -> Any:
            return np.arange(3.0).__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    assert core.from_dlpack(Old()).tolist() == [0, 1, 2]
    assert core.from_dlpack(Old(), device="cpu").tolist() == [0, 1, 2]
    copied = core.from_dlpack(Old(), copy=True)
    assert copied.tolist() == [0, 1, 2]
    with pytest.raises(TypeError):
        core.from_dlpack(Old(), copy=False)


def test_misaligned_memory_is_refused() -> None:
    raw = np.zeros(96, np.uint8)
    begin = -raw.ctypes.data % 16
    for dtype, alignment in (
        (np.int16, 2),
        (np.float32, 4),
        (np.complex64, 4),
        (np.float64, 8),
        (np.complex128, 8),
    ):
        aligned = raw[begin + alignment : begin + alignment + 32].view(dtype)
        assert core.from_dlpack(aligned).shape == aligned.shape
        misaligned = raw[begin + alignment // 2 : begin + alignment // 2 + 32].view(dtype)
        with pytest.raises(BufferError, match=f"aligned to {alignment} bytes"):
            core.from_dlpack(misaligned)
        assert core.from_dlpack(misaligned[:0]).shape == (0,)


@pytest.mark.parametrize(("device", "stream"), [((2, 0), 1), ((1, 0), None)])
def test_producers_get_the_consumers_stream(device: tuple[int, int], stream: int | None) -> None:
    class Producer:
        def __dlpack__(self, **given: Any) -> Any:
            arguments.append(given)
            raise BufferError("only the arguments count")

        def __dlpack_device__(self) -> tuple[int, int]:
            return device

    arguments: list[dict[str, Any]] = []
    with pytest.raises(BufferError, match="only the arguments count"):
        core.from_dlpack(Producer())
    assert [given.get("stream") for given in arguments] == [stream]
