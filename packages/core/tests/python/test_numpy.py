"""Memory shared with NumPy and through the buffer protocol, in both directions."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import math
import mmap
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import rushlight_core as core

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3), (2, 1, 3, 2)])
def test_round_trip(name: str, shape: tuple[int, ...]) -> None:
    a = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(name)
    t = core.from_numpy(a)
    assert t.dtype is getattr(core, name)
    assert tuple(t.shape) == shape
    assert t.tolist() == a.tolist()
    back = t.numpy()
    assert back.dtype == a.dtype
    assert back.dtype.num == a.dtype.num
    assert back.shape == shape
    assert back.tolist() == a.tolist()
    if a.size:
        assert back.ctypes.data == a.ctypes.data == t.data_ptr()


def test_writes_are_seen_on_both_sides() -> None:
    a = np.zeros((2, 3), np.float32)
    t = core.from_numpy(a)
    t[0, 1] = 5
    a[1, 2] = 6
    assert t.tolist() == a.tolist() == [[0, 5, 0], [0, 0, 6]]
    n = t.numpy()
    n += 1
    assert a[0, 0] == 1


@pytest.mark.parametrize("index", [np.s_[::2], np.s_[:, 1:], np.s_[:, None, ::2], np.s_[1], np.s_[:0]])
def test_strides_are_kept(index: Any) -> None:
    a = np.arange(12).reshape(4, 3)[index]
    t = core.from_numpy(a)
    assert t.tolist() == a.tolist()
    if a.size:
        assert t.stride() == tuple(s // a.itemsize for s in a.strides)
    back = core.arange(12).view(4, 3)[1:, ::2].numpy()
    assert back.tolist() == [[3, 5], [6, 8], [9, 11]]
    assert back.strides == (24, 16)


def test_fortran_order_and_broadcasting() -> None:
    f = np.asfortranarray(np.arange(6).reshape(2, 3))
    assert core.from_numpy(f).stride() == (1, 2)
    b = np.broadcast_to(np.arange(3), (2, 3))
    t = core.from_numpy(b)
    assert t.stride() == (0, 1)
    assert t._read_only
    assert core.zeros(1).expand(3).numpy().strides == (0,)


def test_a_read_only_array_makes_a_read_only_tensor() -> None:
    a = np.zeros(3, np.float32)
    a.flags.writeable = False
    t = core.from_numpy(a)
    assert t._read_only
    for view in (t, t[1:], t.detach(), t.view(3, 1)):
        with pytest.raises(RuntimeError, match="read-only"):
            view.fill_(1)
        with pytest.raises(RuntimeError, match="read-only"):
            view += 1
    with pytest.raises(RuntimeError, match="read-only"):
        core.add(t, 1, out=t)
    assert a.tolist() == [0, 0, 0]
    assert not t.numpy().flags.writeable
    assert (t + 1).tolist() == [1, 1, 1]
    t.clone().fill_(1)


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        (np.arange(3)[::-1], ValueError, "negative stride"),
        (np.arange(3, dtype=">i4"), ValueError, "byte order"),
        (np.zeros(3, dtype=[("x", "f4"), ("y", "f4")])["y"][:1], None, ""),
        (np.zeros(3, dtype=[("x", "f4"), ("y", "i1")])["x"], ValueError, "aligned"),
        (np.zeros(3, dtype=[("x", "f4")]), TypeError, "x"),
        (np.array([None]), TypeError, "object"),
        (np.array(["a"]), TypeError, "<U1"),
        (np.array([b"a"]), TypeError, "S1"),
        (np.array(["2020"], dtype="M8[D]"), TypeError, "datetime64"),
        (np.zeros(2, np.longdouble), TypeError, "longdouble|float128"),
        ([1, 2], TypeError, "list"),
        (core.tensor([1]), TypeError, "Tensor"),
        (memoryview(b"ab"), TypeError, "memoryview"),
    ],
)
def test_from_numpy_takes_only_what_it_can_share(
    array: Any, error: type[Exception] | None, text: str
) -> None:
    if error is None:
        assert core.from_numpy(array).tolist() == array.tolist()
        return
    with pytest.raises(error, match=text):
        core.from_numpy(array)


def test_one_element_may_have_any_stride() -> None:
    assert core.from_numpy(np.arange(3)[::-1][:1]).tolist() == [2]


def test_the_array_is_kept_alive() -> None:
    a = np.arange(1000.0)
    alive = weakref.ref(a)
    t = core.from_numpy(a)
    del a
    assert alive() is not None
    view = t[10:20]
    del t
    assert view.tolist() == [float(i) for i in range(10, 20)]
    del view
    assert alive() is None


def test_the_tensor_s_memory_is_kept_alive() -> None:
    t = core.arange(1000)
    n = t.numpy()[10:12]
    del t
    junk = [core.zeros(1000, dtype=core.int64) for _ in range(20)]
    assert n.tolist() == [10, 11]
    del junk


def test_references_are_balanced() -> None:
    a = np.zeros(3)
    before = sys.getrefcount(a)
    for _ in range(20):
        t = core.from_numpy(a)
        n = t.numpy()
        m = memoryview(t)
        del t, n, m
    assert sys.getrefcount(a) == before


def test_memory_with_exports_is_not_moved() -> None:
    out = core.zeros(2)
    n = out.numpy()
    with pytest.raises(RuntimeError, match="1 NumPy arrays"):
        core.add(core.zeros(1000), 1, out=out)
    assert n.tolist() == [0, 0]
    assert not out.untyped_storage().resizable()
    del n
    gc.collect()
    core.add(core.zeros(1000), 1, out=out)
    assert out.shape == (1000,)


def test_a_tensor_given_other_memory_leaves_the_array_alone() -> None:
    t = core.zeros(3)
    n = t.numpy()
    t.data = core.ones(5)
    assert n.tolist() == [0, 0, 0]
    assert t.tolist() == [1] * 5


def test_data_of_what_requires_grad_stays_differentiable() -> None:
    t = core.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="floating point"):
        t.data = core.tensor([1, 2])
    assert t.tolist() == [0, 0, 0]
    t.data = core.ones(1, dtype=core.float64)
    assert t.requires_grad
    assert t.dtype is core.float64


def test_numpy_refuses_what_it_cannot_show() -> None:
    with pytest.raises(RuntimeError, match="requires grad"):
        core.zeros(2, requires_grad=True).numpy()
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(core.zeros(2, requires_grad=True))
    with pytest.raises(TypeError, match="bfloat16"):
        core.zeros(2, dtype=core.bfloat16).numpy()
    with pytest.raises(TypeError, match="meta"):
        core.zeros(2, device="meta").numpy()
    assert core.zeros(2, requires_grad=True).numpy(force=True).tolist() == [0, 0]
    with core.no_grad():  # operators are not recorded here, so numpy() is allowed
        assert core.zeros(2, requires_grad=True).numpy().tolist() == [0, 0]
    with pytest.raises(TypeError, match="force"):
        core.zeros(2).numpy(1, force=True)


def test_numpy_reads_tensors() -> None:
    t = core.arange(6).view(2, 3)
    assert np.asarray(t).base is not None
    assert np.array(t).tolist() == t.tolist()
    assert np.asarray(t, dtype=np.float32).dtype == np.float32
    assert t.__array__(np.float64).dtype == np.float64
    assert np.array([t, t]).shape == (2, 2, 3)
    assert np.add(t, 1).tolist() == (t + 1).tolist()
    assert float(np.mean(t.numpy())) == 2.5


@pytest.mark.parametrize("swap", [False, True])
def test_arithmetic_with_arrays_gives_tensors(swap: bool) -> None:
    a, t = np.arange(3.0), core.ones(3)
    made = a + t if swap else t + a
    assert isinstance(made, core.Tensor)
    assert made.dtype is core.float64
    assert made.tolist() == [1, 2, 3]
    less = a < t if swap else t > a
    assert less.tolist() == [True, False, False]
    assert (np.float64(2) * t if swap else t * np.float64(2)).dtype is core.float32
    t += a.astype(np.float32)
    assert t.tolist() == [1, 2, 3]
    assert (a**t if swap else t**a).tolist() == ([0, 1, 8] if swap else [1, 2, 9])


def test_buffers_out() -> None:
    t = core.arange(6, dtype=core.int32).view(2, 3)
    m = memoryview(t)
    assert (m.format, m.itemsize, m.shape, m.strides, m.readonly) == ("i", 4, (2, 3), (12, 4), False)
    assert bytes(m) == np.arange(6, dtype=np.int32).tobytes()
    m[1, 2] = 50
    assert t[1, 2].item() == 50
    assert memoryview(t[:, ::2]).strides == (12, 8)
    assert memoryview(core.tensor(1.5)).shape == ()
    assert memoryview(core.zeros(0)).nbytes == 0
    assert (ctypes.c_int32 * 6).from_buffer(t)[5] == 50


def test_buffers_refuse() -> None:
    t = core.zeros(2, 3)
    with pytest.raises(BufferError, match="contiguous"):
        hashlib.sha256(t[:, 1])  # type: ignore[arg-type]
    with pytest.raises(BufferError, match="requires grad"):
        memoryview(core.zeros(2, requires_grad=True))
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(core.zeros(2, dtype=core.bfloat16))
    with pytest.raises(BufferError, match="meta"):
        memoryview(core.zeros(2, device="meta"))
    read_only = core.frombuffer(b"abcd", dtype=core.uint8)
    assert memoryview(read_only).readonly
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_uint8.from_buffer(read_only)


def test_a_mapped_file(tmp_path: Any) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(4, dtype=np.float64).tobytes())
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        t = core.frombuffer(mapped, dtype=core.float64)
        t[0] = 9
        with pytest.raises(BufferError):
            mapped.close()  # the tensor views the mapping
        del t
    assert np.fromfile(path).tolist() == [9, 1, 2, 3]


def test_untyped_storage() -> None:
    t = core.arange(4, dtype=core.int16)
    s = t.untyped_storage()
    assert s is t[1:].untyped_storage()
    assert (s.nbytes(), len(s), s.data_ptr(), s.device) == (8, 8, t.data_ptr(), t.device)
    assert bytes(s) == np.arange(4, dtype=np.int16).tobytes()
    alive = weakref.ref(s)
    del s
    assert alive() is None


@pytest.mark.parametrize("name", [*DTYPES, "uint16", "uint32", "uint64", "complex64", "complex128"])
def test_lists_of_every_dtype(name: str) -> None:
    a = np.array([[0, 1, 100], [3, 2, 0], [7, 0, 5], [1, 0, 1]]).astype(name)
    if name == "uint64":
        a[0, 0] = 2**64 - 1
    if name == "int64":
        a[0, :2] = [-(2**63), 2**63 - 1]
    if name.startswith("float"):
        a[0] = [-0.0, math.inf, 0.1]
    t = core.from_numpy(a)
    views = [(t, a), (t.t(), a.T), (t[:, ::2], a[:, ::2]), (t[1:1], a[1:1]), (t[:, :0], a[:, :0])]
    for same, array in [*views, (t[2, 1], a[2, 1])]:
        assert same.tolist() == array.tolist()
        assert repr(same.tolist()) == repr(array.tolist())  # the same types and signs of zeros
    assert t[:1].expand(2, 3).tolist() == [a[0].tolist()] * 2
