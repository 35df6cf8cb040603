"""tensor(), as_tensor(), asarray(), frombuffer(), Tensor(...): arguments that they accept, and that they refuse."""

from __future__ import annotations

import array
import os
import re
import resource
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight_core as core

FLOAT, INT, BOOL = core.float32, core.int64, core.bool


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, INT, ()),
        (1.5, FLOAT, ()),
        (True, BOOL, ()),
        ([], FLOAT, (0,)),
        ([[], []], FLOAT, (2, 0)),
        ([1, 2], INT, (2,)),
        ([1, 2.5], FLOAT, (2,)),
        ([True, False], BOOL, (2,)),
        ([True, 2], INT, (2,)),
        (((1, 2), [3, 4]), INT, (2, 2)),
        (range(3), INT, (3,)),
        ([range(2), range(2)], INT, (2, 2)),
        ([np.float64(1), 2], core.float64, (2,)),
        (np.float32(1), core.float32, ()),
        (np.int8(1), core.int8, ()),
        (np.bool_(True), BOOL, ()),
        ([np.array([1.0, 2.0]), np.array([3.0, 4.0])], core.float64, (2, 2)),
        ([core.tensor(1), core.tensor(2.0)], FLOAT, (2,)),
    ],
)
def test_shape_and_dtype_are_inferred(data: Any, dtype: core.dtype, shape: tuple[int, ...]) -> None:
    made = core.tensor(data)
    assert made.dtype is dtype
    assert tuple(made.shape) == shape
    assert made.tolist() == np.array([x.item() for x in data] if _holds_tensors(data) else data).tolist()


def _holds_tensors(data: Any) -> bool:
    return isinstance(data, list) and bool(data) and isinstance(data[0], core.Tensor)


@pytest.mark.parametrize(
    "name", ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]
)
def test_arrays_keep_their_dtype_and_are_copied(name: str) -> None:
    source = np.arange(6).reshape(2, 3).astype(name)
    made = core.tensor(source)
    assert made.dtype is getattr(core, name)
    expected = source.tolist()
    source[:] = 0
    assert made.tolist() == expected


@pytest.mark.parametrize(
    "source", [np.arange(6)[::-1], np.arange(4, dtype=">i4"), np.arange(8).reshape(2, 4)[:, ::2]]
)
def test_odd_arrays_are_copied_right(source: np.ndarray[Any, Any]) -> None:
    assert core.tensor(source).tolist() == source.tolist()
    assert core.as_tensor(source).tolist() == source.tolist()


def test_misaligned_arrays_are_copied() -> None:
    raw = np.zeros(9, np.uint8)
    odd = raw[1:].view(np.float64)
    odd[:] = 2.5
    assert core.tensor(odd).tolist() == [2.5]
    with pytest.raises(ValueError, match="aligned"):
        core.from_numpy(odd)


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ([[1], 2], TypeError, "expected a sequence of length 1 at dimension 1"),
        ([1, [2]], ValueError, "at depth 1, got a sequence"),
        ([[1, 2], [3]], ValueError, "expected a sequence of length 2 at dimension 1, got one of length 1"),
        ("abc", TypeError, "str"),
        (["abc"], TypeError, "str"),
        (None, TypeError, "NoneType"),
        ([1, None], TypeError, "NoneType"),
        ({1, 2}, TypeError, "set"),
        ({1: 2}, TypeError, "dict"),
        (object(), TypeError, "object"),
        (1 << 70, ValueError, "64 bits"),
        (np.array([object()]), TypeError, "dtype object"),
        (np.array(["a"]), TypeError, "dtype <U1"),
        (np.array("2020", dtype="M8[Y]"), TypeError, "datetime64"),
        ([core.tensor([1, 2])], ValueError, "one element"),
    ],
)
def test_bad_data_is_named(data: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        core.tensor(data)


def test_complex_numbers_do_not_become_real() -> None:
    for dtype in (core.int64, core.float16, core.float32):
        for data in (1j, [1, 2j]):
            with pytest.raises(
                TypeError, match=f"complex number cannot be converted to dtype {str(dtype)[6:]}"
            ):
                core.tensor(data, dtype=dtype)
    assert core.tensor([1j, 0j], dtype=core.bool).tolist() == [True, False]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(300, core.uint8), (-1, core.uint8), (1e30, core.int32), (float("nan"), core.int64)],
)
def test_numbers_that_do_not_fit_are_refused(value: float, dtype: core.dtype) -> None:
    with pytest.raises(RuntimeError, match="fit"):
        core.tensor(value, dtype=dtype)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70])
def test_integers_beyond_64_bits(number: int) -> None:
    for data in (number, [number]):
        with pytest.raises(ValueError, match="does not fit 64 bits"):
            core.tensor(data)
        with pytest.raises(ValueError, match="does not fit 64 bits"):
            core.tensor(data, dtype=INT)
        for dtype in (core.float32, core.float64, core.complex64):
            assert core.tensor(data, dtype=dtype).flatten().tolist() == [float(number)]
    with pytest.raises(ValueError, match="too large"):
        core.tensor(10**400, dtype=core.float64)
    with pytest.raises(OverflowError, match="does not fit 64 bits"):
        core.ones(2) + number
    with pytest.raises(OverflowError, match=r"full.*does not fit 64 bits"):
        core.full((2,), number)


def test_numbers_are_converted() -> None:
    assert core.tensor([1.9, -1.9], dtype=INT).tolist() == [1, -1]
    assert core.tensor(2, dtype=BOOL).item() is True
    assert core.tensor(1e40).item() == float("inf")
    assert core.tensor([1], dtype=float).dtype is core.float64
    assert core.zeros(1, dtype=complex).dtype is core.complex128
    assert core.zeros(1).to(float).dtype is core.float64
    with pytest.raises(TypeError, match="must be a dtype"):
        core.set_default_dtype(float)
    assert core.tensor(0.1, dtype=core.bfloat16).item() == 0.10009765625


def test_the_default_dtype_is_used() -> None:
    core.set_default_dtype(core.float64)
    try:
        assert core.tensor(1.5).dtype is core.float64
    finally:
        core.set_default_dtype(core.float32)
    with pytest.raises(TypeError, match="floating point"):
        core.set_default_dtype(core.int64)


def test_copying_a_tensor_warns() -> None:
    source = core.tensor([1.0])
    with pytest.warns(UserWarning, match="detach"):
        made = core.tensor(source)
    assert made.data_ptr() != source.data_ptr()


@pytest.mark.filterwarnings("ignore:tensor.data")
def test_conversions_return_plain_tensors_and_call_no_override() -> None:
    class Strict(core.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError(f"{func} was called")

    given = core.ones(2, requires_grad=True).as_subclass(Strict)
    made = [
        core.tensor(given),
        core.tensor(given, dtype=core.float64),
        core.tensor(given, requires_grad=True),
        core.as_tensor(given, dtype=core.float64),
        core.asarray(given, dtype=core.float64),
        core.asarray(given, copy=True),
        core.asarray(given, requires_grad=False),
        core.ones(1).new_tensor(given),
        core.Tensor(given),
    ]
    assert [type(t) for t in made] == [core.Tensor] * len(made)
    assert core.as_tensor(given) is core.asarray(given) is given


def test_requires_grad() -> None:
    assert core.tensor([1.0], requires_grad=True).requires_grad
    assert not core.tensor([1.0]).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        core.tensor([1], requires_grad=True)


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "missing argument 'data'"),
        ((1, core.float32), {}, "takes at most 1 positional"),
        ((1,), {"dtyp": core.float32}, "unexpected keyword argument 'dtyp'"),
        ((1,), {"dtype": 3}, "must be a dtype"),
        ((1,), {"device": 3.0}, "must be a device"),
        ((1,), {"data": 1}, "two values"),
    ],
)
def test_bad_arguments_are_named(args: Any, kwargs: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        core.tensor(*args, **kwargs)


def test_unknown_devices_are_named() -> None:
    with pytest.raises(RuntimeError, match="abacus"):
        core.tensor(1, device="abacus")


def test_as_tensor_shares() -> None:
    t = core.tensor([1.0])
    assert core.as_tensor(t) is t
    a = np.zeros(2, np.float32)
    core.as_tensor(a).fill_(3)
    assert a.tolist() == [3, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert core.as_tensor([1, 2]).dtype is INT


def test_as_tensor_reads_the_protocols() -> None:
    assert core.as_tensor(array.array("d", [1.0, 2.0])).tolist() == [1.0, 2.0]
    assert core.as_tensor(memoryview(b"ab")).tolist() == [97, 98]

    class Interface:
        __array_interface__ = np.arange(3, dtype=np.int32).__array_interface__

    assert core.as_tensor(Interface()).tolist() == [0, 1, 2]

    class Exporter:
        def __dlpack__(self, **kwargs: Any) -> Any:
            return np.arange(3.0).__dlpack__()

    assert core.as_tensor(Exporter()).tolist() == [0.0, 1.0, 2.0]


def test_asarray_obeys_copy() -> None:
    a = np.zeros(2, np.float32)
    shared = core.asarray(a, copy=False)
    a[0] = 1
    assert shared.tolist() == [1, 0]
    assert core.asarray(a, copy=True).data_ptr() != shared.data_ptr()
    with pytest.raises(ValueError, match="copy=False"):
        core.asarray([1.0], copy=False)
    assert core.asarray(a, requires_grad=True).requires_grad
    x = core.ones(2, requires_grad=True)
    assert core.asarray(x) is x
    assert not core.asarray(x, requires_grad=False).requires_grad


def test_frombuffer() -> None:
    data = bytearray(np.arange(4, dtype=np.int32).tobytes())
    t = core.frombuffer(data, dtype=core.int32, count=2, offset=4)
    assert t.tolist() == [1, 2]
    t.fill_(9)
    assert np.frombuffer(data, np.int32).tolist() == [0, 9, 9, 3]
    assert core.frombuffer(b"abcd", dtype=core.uint8)._read_only


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"count": 0}, "must not be 0"),
        ({"count": 9}, "need more than"),
        ({"offset": -4}, "at least 0"),
        ({"offset": 16}, "below the buffer's 16 bytes"),
        ({"offset": 1}, "not a multiple"),
        ({"offset": 1, "count": 1}, "not a multiple of the element size"),
    ],
)
def test_frombuffer_checks_its_bounds(kwargs: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        core.frombuffer(bytearray(16), dtype=core.int32, **kwargs)


def test_frombuffer_refuses_what_is_none() -> None:
    with pytest.raises(ValueError, match="empty"):
        core.frombuffer(b"", dtype=core.uint8)
    with pytest.raises(ValueError, match="list does not support the buffer protocol"):
        core.frombuffer([1], dtype=core.uint8)
    with pytest.raises(TypeError, match="dtype"):
        core.frombuffer(b"ab")  # type: ignore[call-arg]


def test_the_legacy_constructor() -> None:
    assert core.Tensor([1, 2]).dtype is FLOAT
    assert core.Tensor(2, 3).shape == (2, 3)
    assert core.Tensor().shape == (0,)
    t = core.tensor([1.0])
    assert core.Tensor(t).data_ptr() == t.data_ptr()
    with pytest.raises(TypeError, match="sizes that are ints"):
        core.Tensor(1, "a")
    with pytest.raises(RuntimeError, match="negative"):
        core.Tensor(-1)


def test_limits_agree_with_numpy() -> None:
    for name in ("float16", "float32", "float64"):
        ours, theirs = core.finfo(getattr(core, name)), np.finfo(name)
        for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal"):
            assert getattr(ours, field) == getattr(theirs, field), (name, field)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        ours_i, theirs_i = core.iinfo(getattr(core, name)), np.iinfo(name)
        assert (ours_i.bits, ours_i.min, ours_i.max) == (theirs_i.bits, theirs_i.min, theirs_i.max)
    with pytest.raises(TypeError, match="floating-point"):
        core.finfo(core.int8)
    with pytest.raises(TypeError, match="integer"):
        core.iinfo(core.float32)


def test_promotion() -> None:
    assert core.promote_types(core.uint8, core.int8) is core.int16
    assert core.result_type(core.tensor([1]), 1.0) is FLOAT
    assert core.result_type(core.tensor([1], dtype=core.int8), core.tensor(300)) is core.int8
    assert core.can_cast(core.int64, core.float16)
    assert not core.can_cast(core.float32, core.int64)
    with pytest.raises(TypeError, match="type2"):
        core.promote_types(core.int8, 3)


def test_seeds_and_states() -> None:
    core.manual_seed(7)
    assert core.initial_seed() == 7
    state = core.get_rng_state()
    core.manual_seed(8)
    core.set_rng_state(state)
    assert core.initial_seed() == 7
    with pytest.raises(RuntimeError, match="but a state"):
        core.set_rng_state(core.tensor([1, 2], dtype=core.uint8))


def test_no_memory() -> None:
    with pytest.raises(core.OutOfMemoryError):
        core.empty(2**40)
    assert issubclass(core.OutOfMemoryError, MemoryError)
    assert issubclass(core.OutOfMemoryError, RuntimeError)  # as in PyTorch


def test_layout_and_pin_memory_without_a_device() -> None:
    for make in (core.empty, core.zeros, core.rand):
        assert make(2, 3, layout=core.strided, pin_memory=False).shape == (2, 3)
    assert core.zeros_like(core.ones(2), layout=None).tolist() == [0, 0]
    assert core.ones(1).new_zeros(2, pin_memory=False).tolist() == [0, 0]
    for make in (core.empty, core.tensor):
        with pytest.raises(RuntimeError, match="no device is attached that uses pinned memory"):
            make(2, pin_memory=True)
    with pytest.raises(TypeError, match=r"empty\(pin_memory\): must be a bool"):
        core.empty(2, pin_memory=3)
    with pytest.raises(NotImplementedError, match=r"zeros\(layout\)"):
        core.zeros(2, layout="sparse_coo")
    with pytest.raises(TypeError, match="unexpected keyword argument 'layout'"):
        core.add(core.ones(1), 1, layout=core.strided)


def test_ranges_of_integers_are_made_of_integers() -> None:
    """arange with an integer dtype drops the fractions of start, end and step."""
    assert core.arange(0, 3.5, dtype=core.int64).tolist() == [0, 1, 2]
    assert core.arange(0, 10, 1.9, dtype=core.int64).tolist() == list(range(10))
    assert core.arange(2.5, 6, dtype=core.uint8).tolist() == [2, 3, 4, 5]
    assert core.arange(3.5, dtype=core.int32).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="becomes 0"):
        core.arange(0, 3, 0.5, dtype=core.int64)


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer's blocks are malloc's and not listed"
)
def test_errors_about_memory_name_the_largest_blocks() -> None:
    kept = core.ones(3_000_000)
    with pytest.raises(
        core.OutOfMemoryError, match=r"the largest blocks are .* MiB \(.*test_creation.py:\d+\)"
    ):
        core.empty(10**15)
    assert kept[0] == 1


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer reserves address space"
)
def test_errors_about_memory_name_the_limit_of_the_address_space() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + (512 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        with pytest.raises(core.OutOfMemoryError) as caught:
            core.empty(1 << 30, dtype=core.uint8)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    found = re.search(r"RLIMIT_AS is ([\d.]+) MiB, of which ([\d.]+) MiB are used", str(caught.value))
    assert found is not None
    assert float(found[1]) == pytest.approx(limit / 2**20, abs=0.1)
    assert float(found[2]) == pytest.approx(used / 2**20, abs=256)
