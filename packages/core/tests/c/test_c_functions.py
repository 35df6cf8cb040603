"""The C functions for tensors, gradients, random numbers and the list of operators, and the errors of each function."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
    cast,
    sizeof,
)
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_interface import (
    BUFFER,
    DTYPES_OF_C,
    INDEX,
    OK,
    RUNTIME,
    TENSOR,
    TYPE,
    VALUE,
    Array,
    BackwardOptions,
    C,
    Info,
    OperatorInfo,
    Releaser,
    Value,
    array,
    check,
    copied,
    folder,
    handle,
    includes,
    prototypes,
    value,
)

import rushlight_core as core

HERE = Path(__file__).parent
X = core.arange(6.0).reshape(2, 3)
SYMBOLS = (HERE / "symbols.txt").read_text().split()


def text() -> str:
    return C.rl_error_text().decode()


@pytest.mark.parametrize("dtype", DTYPES_OF_C, ids=str)
def test_dtypes(dtype: Any) -> None:
    x = core.arange(4).to(dtype)
    made = handle(x)
    info = Info(sizeof(Info))
    check(C.rl_tensor_describe(made, byref(info)))
    assert (info.dtype, info.ndim, info.sizes[0], info.numel) == (DTYPES_OF_C.index(dtype), 1, 4, 4)
    assert core.equal(copied(made), x)
    C.rl_tensor_free(made)


def test_the_header_numbers_dtypes_so() -> None:
    header = next(
        p for folder in includes() for p in [folder / "rushlight" / "rushlight.h"] if p.exists()
    ).read_text()
    names = re.search(r"typedef enum rl_dtype \{(.*?)\}", header, re.DOTALL)
    assert names
    assert [n.lower() for n in re.findall(r"RL_(\w+)", names[1])] == [
        str(d).split(".")[1] for d in DTYPES_OF_C
    ]


def test_memory_is_shared_and_released_once() -> None:
    x, freed = X.clone(), []
    release = Releaser(freed.append)
    made = handle(x, release=release, context=7)
    another, seen = c_void_p(), Array(sizeof(Array))
    check(C.rl_tensor_share(made, byref(another)))
    check(C.rl_tensor_to_array(made, byref(seen)))
    assert seen.data == x.data_ptr()
    assert seen.flags == 0
    C.rl_tensor_free(made)
    C.rl_tensor_free(another)
    assert freed == []
    C.rl_array_free(byref(seen))
    C.rl_array_free(byref(seen))
    assert freed == [7]
    assert not seen.data
    assert not seen.sizes


@pytest.mark.parametrize("ndim", [2, 9])
@pytest.mark.parametrize("operator", ["transpose_", "unsqueeze_", "squeeze_", "set_"])
def test_an_array_keeps_its_shape_when_the_tensor_changes(ndim: int, operator: str) -> None:
    """Operators that change the shape of a tensor in place do not change arrays that refer to its memory."""
    x = core.arange(6.0).reshape(2, 3, *[1] * (ndim - 2))
    tensor, seen = handle(x), Array(sizeof(Array))
    check(C.rl_tensor_to_array(tensor, byref(seen)))
    numbers = {"transpose_": (0, 1), "unsqueeze_": (0,)}.get(operator, ())
    given = (Value * 3)(Value(TENSOR), *(value(n, []) for n in numbers))
    given[0].as_.tensor = tensor.value
    result = (Value * 1)()
    check(C.rl_call(operator.encode(), given, 1 + len(numbers), result, 1))
    C.rl_value_free(result)
    assert (seen.ndim, seen.sizes[:ndim], seen.strides[:ndim]) == (ndim, list(x.shape), list(x.stride()))
    assert cast(seen.data, POINTER(c_float))[:6] == [0, 1, 2, 3, 4, 5]
    C.rl_array_free(byref(seen))
    C.rl_tensor_free(tensor)


def test_strides_and_read_only_memory() -> None:
    x = X.t()
    made = handle(x, flags=1)
    assert core.equal(copied(made), x)
    info, seen = Info(sizeof(Info)), Array(sizeof(Array))
    check(C.rl_tensor_describe(made, byref(info)))
    check(C.rl_tensor_to_array(made, byref(seen)))
    assert (info.is_read_only, info.is_contiguous, info.is_leaf, info.requires_grad, seen.flags) == (
        1,
        0,
        1,
        0,
        1,
    )
    C.rl_array_free(byref(seen))
    given, out = (Value * 2)(value(None, []), value(1, [])), (Value * 1)()
    given[0].kind, given[0].as_.tensor = TENSOR, made.value
    assert C.rl_call(b"add_", given, 2, out, 1) == RUNTIME
    assert "read-only" in text()
    C.rl_tensor_free(made)


# --- DLPack ---


class Managed(Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", c_int32), ("minor", c_int32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
        ("data", c_void_p), ("device", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code_bits_lanes", c_int32),
        ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]  # fmt: skip


def test_dlpack_in_both_directions() -> None:
    x, freed = X.clone(), []
    release = Releaser(freed.append)
    made, shared, again = handle(x, release=release, context=1), c_void_p(), c_void_p()
    check(C.rl_tensor_to_dlpack(made, byref(shared)))
    managed = cast(shared, POINTER(Managed))[0]
    assert (managed.major, managed.ndim, managed.data, managed.shape[:2]) == (1, 2, x.data_ptr(), [2, 3])
    C.rl_tensor_free(made)
    check(C.rl_tensor_from_dlpack(shared, byref(again)))
    assert core.equal(copied(again), x)
    assert freed == []
    C.rl_tensor_free(again)
    assert freed == [1]


def test_arrays_of_another_library_through_dlpack() -> None:
    import ctypes

    take = ctypes.pythonapi.PyCapsule_GetPointer
    take.restype, take.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    numbers = np.arange(3.0)
    try:
        capsule = numbers.__dlpack__(max_version=(1, 0))
    except TypeError:
        pytest.skip("this NumPy has no versioned capsules")
    pointer = c_void_p(take(capsule, b"dltensor_versioned"))
    rename(capsule, b"used_dltensor_versioned")
    made = c_void_p()
    check(C.rl_tensor_from_dlpack(pointer, byref(made)))
    numbers[0] = 5
    assert copied(made).tolist() == [5, 1, 2]
    C.rl_tensor_free(made)


def managed(**changes: Any) -> tuple[Managed, list[int]]:
    """Return an array as another library exports it, and a list that counts the calls of its deleter."""
    freed: list[int] = []
    deleter = Releaser(lambda _: freed.append(1))
    shape = (c_int64 * 1)(2)
    made = Managed(
        1, 1, None, cast(deleter, c_void_p), 0, X.data_ptr(), 1, 0, 1, 2 | 32 << 8 | 1 << 16, shape
    )
    made.keep = (deleter, shape)  # type: ignore[attr-defined]
    for name, given in changes.items():
        setattr(made, name, given)
    return made, freed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"major": 2}, "has version 2.1 of DLPack"),
        ({"device": 99}, "memory on device (99, 0) is not supported"),
        ({"ndim": 65}, "at most 64 dimensions"),
        ({"ndim": -1}, "at most 64 dimensions"),
        ({"code_bits_lanes": 2 | 32 << 8 | 2 << 16}, "no tensor dtype corresponds"),
        ({"shape": (c_int64 * 1)(-1)}, "cannot be negative"),
        ({"shape": (c_int64 * 2)(2**62, 8), "ndim": 2}, "larger than any memory"),
        ({"shape": (c_int64 * 1)(2**62)}, "larger than any memory"),
        ({"strides": (c_int64 * 1)(-1)}, "a stride is negative"),
        ({"strides": (c_int64 * 1)(2**63 - 1), "shape": (c_int64 * 1)(3)}, "larger than any memory"),
        ({"data": None}, "its data is null"),
        ({"shape": None}, "its shape is null"),
        ({"byte_offset": 1}, "must be aligned to 4 bytes"),
        ({"byte_offset": 2**64 - 4}, "the byte offset 18446744073709551612 is larger than any memory"),
        ({"code_bits_lanes": 2 | 7 << 8 | 1 << 16}, "no tensor dtype corresponds"),
        ({"code_bits_lanes": 2 | 32 << 8}, "no tensor dtype corresponds"),
        ({"code_bits_lanes": 200 | 32 << 8 | 1 << 16}, "no tensor dtype corresponds"),
    ],
)
def test_bad_arrays_of_dlpack(changes: dict[str, Any], message: str) -> None:
    given, freed = managed(**changes)
    out = c_void_p()
    assert C.rl_tensor_from_dlpack(byref(given), byref(out)) == BUFFER
    assert message in text()
    assert freed == [1]
    assert not out.value


class Unversioned(Structure):
    """DLManagedTensor."""

    _fields_ = [*Managed._fields_[5:], ("context", c_void_p), ("deleter", c_void_p)]


def unversioned(**changes: Any) -> tuple[Unversioned, list[int]]:
    given, freed = managed()
    fields = {name: getattr(given, name) for name, _ in Unversioned._fields_} | changes
    made = Unversioned(**fields)
    made.keep = given  # type: ignore[attr-defined]
    return made, freed


def test_dlpack_without_versions_in_both_directions() -> None:
    x, freed = X.clone(), []
    release = Releaser(freed.append)
    made, shared, again = handle(x, release=release, context=1), c_void_p(), c_void_p()
    check(C.rl_tensor_to_dlpack_unversioned(made, byref(shared)))
    seen = cast(shared, POINTER(Unversioned))[0]
    assert (seen.ndim, seen.data, seen.shape[:2], seen.strides[:2]) == (2, x.data_ptr(), [2, 3], [3, 1])
    C.rl_tensor_free(made)
    check(C.rl_tensor_from_dlpack_unversioned(shared, byref(again)))
    assert core.equal(copied(again), x)
    assert freed == []
    C.rl_tensor_free(again)
    assert freed == [1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"device": 99}, "memory on device (99, 0) is not supported"), ({"ndim": 65}, "at most 64 dimensions")],
)
def test_bad_arrays_of_dlpack_without_versions(changes: dict[str, Any], message: str) -> None:
    given, freed = unversioned(**changes)
    out = c_void_p()
    assert C.rl_tensor_from_dlpack_unversioned(byref(given), byref(out)) == BUFFER
    assert message in text()
    assert freed == [1]
    assert not out.value


def test_memory_that_is_read_only_needs_a_version() -> None:
    made, out = handle(X, flags=1), c_void_p()
    assert C.rl_tensor_to_dlpack_unversioned(made, byref(out)) == BUFFER
    assert "read-only" in text()
    check(C.rl_tensor_to_dlpack(made, byref(out)))
    again = c_void_p()
    check(C.rl_tensor_from_dlpack(out, byref(again)))
    C.rl_tensor_free(again)
    C.rl_tensor_free(made)


# --- operators ---


def test_every_operator_is_listed() -> None:
    infos = []
    for i in range(C.rl_operator_count()):
        info = OperatorInfo(sizeof(OperatorInfo))
        check(C.rl_operator_at(c_size_t(i), byref(info)))
        infos.append(info)
        same = OperatorInfo(sizeof(OperatorInfo))
        check(C.rl_operator_find(info.name, byref(same)))
        assert (same.name, same.hash, same.num_results) == (info.name, info.hash, info.num_results)
    names = [info.name.decode() for info in infos]
    assert names == sorted(names)
    assert {"add", "add_", "add.out", "max.dim"} < set(names)
    add = infos[names.index("max.dim")]
    assert (add.num_arguments, add.num_required, add.num_results) == (3, 2, 2)
    assert infos[names.index("add.out")].num_required == 4


def test_seeds() -> None:
    def draw(generator: c_void_p | None) -> list[float]:
        keep: list[Any] = []
        given, out = (Value * 2)(value((3,), keep), Value()), (Value * 1)()
        if generator is not None:
            given[1].kind, given[1].as_.generator = 11, generator.value
        check(C.rl_call(b"randn", given, 2, out, 1))
        numbers = copied(c_void_p(out[0].as_.tensor)).tolist()
        C.rl_value_free(out)
        return numbers

    check(C.rl_manual_seed(7))
    first = draw(None)
    own = c_void_p()
    check(C.rl_generator_new(7, byref(own)))
    assert draw(own) == first != draw(own)
    C.rl_generator_free(own)
    core.manual_seed(7)
    assert core.randn(3).tolist() == first


# --- the errors of each function ---


def new(**changes: Any) -> Array:
    return array(X, **changes)


Call = Callable[[c_void_p, Any], int]
FAILURES: dict[str, tuple[Call, int, str]] = {
    "rl_tensor_from_array": (lambda t, out: C.rl_tensor_from_array(None, out), VALUE, "(array): must not be null"),
    "rl_tensor_from_array result": (lambda t, out: C.rl_tensor_from_array(byref(new()), None), VALUE, "(result)"),
    "rl_tensor_to_array": (lambda t, out: C.rl_tensor_to_array(None, byref(Array(sizeof(Array)))), VALUE, "(tensor)"),
    "rl_tensor_to_array result": (lambda t, out: C.rl_tensor_to_array(t, None), VALUE, "(result)"),
    "rl_tensor_to_array size": (lambda t, out: C.rl_tensor_to_array(t, byref(Array(8))), VALUE, "at least 64, got 8"),
    "rl_tensor_from_dlpack": (lambda t, out: C.rl_tensor_from_dlpack(None, out), VALUE, "(array): must not be null"),
    "rl_tensor_from_dlpack result": (lambda t, out: C.rl_tensor_from_dlpack(byref(managed()[0]), None), VALUE, "(result)"),
    "rl_tensor_to_dlpack": (lambda t, out: C.rl_tensor_to_dlpack(None, out), VALUE, "(tensor): must not be null"),
    "rl_tensor_to_dlpack result": (lambda t, out: C.rl_tensor_to_dlpack(t, None), VALUE, "(result): must not be null"),
    "rl_tensor_from_dlpack_unversioned": (
        lambda t, out: C.rl_tensor_from_dlpack_unversioned(None, out), VALUE, "(array): must not be null"),
    "rl_tensor_from_dlpack_unversioned result": (
        lambda t, out: C.rl_tensor_from_dlpack_unversioned(byref(unversioned()[0]), None), VALUE, "(result)"),
    "rl_tensor_to_dlpack_unversioned": (
        lambda t, out: C.rl_tensor_to_dlpack_unversioned(None, out), VALUE, "(tensor): must not be null"),
    "rl_tensor_to_dlpack_unversioned result": (
        lambda t, out: C.rl_tensor_to_dlpack_unversioned(t, None), VALUE, "(result): must not be null"),
    "rl_tensor_share": (lambda t, out: C.rl_tensor_share(None, out), VALUE, "rl_tensor_share(tensor): must not be null"),
    "rl_tensor_share result": (lambda t, out: C.rl_tensor_share(t, None), VALUE, "rl_tensor_share(result)"),
    "rl_tensor_describe": (lambda t, out: C.rl_tensor_describe(None, byref(Info(sizeof(Info)))), VALUE, "(tensor)"),
    "rl_tensor_describe info": (lambda t, out: C.rl_tensor_describe(t, None), VALUE, "rl_tensor_describe(info)"),
    "rl_tensor_describe size": (lambda t, out: C.rl_tensor_describe(t, byref(Info(4))), VALUE, "must be at least 64, got 4"),
    "rl_tensor_set_requires_grad": (lambda t, out: C.rl_tensor_set_requires_grad(None, 1), VALUE, "(tensor)"),
    "rl_tensor_set_requires_grad of integers": (
        lambda t, out: C.rl_tensor_set_requires_grad(handle(core.arange(3)), 1), RUNTIME, "floating"),
    "rl_tensor_grad": (lambda t, out: C.rl_tensor_grad(None, out), VALUE, "rl_tensor_grad(tensor)"),
    "rl_tensor_grad result": (lambda t, out: C.rl_tensor_grad(t, None), VALUE, "rl_tensor_grad(result)"),
    "rl_tensor_set_grad": (lambda t, out: C.rl_tensor_set_grad(None, None), VALUE, "rl_tensor_set_grad(tensor)"),
    "rl_tensor_set_grad itself": (lambda t, out: C.rl_tensor_set_grad(t, t), RUNTIME, "its own grad"),
    "rl_tensor_set_grad shape": (lambda t, out: C.rl_tensor_set_grad(t, handle(core.ones(5))), RUNTIME, "shape (2, 3)"),
    "rl_backward": (lambda t, out: C.rl_backward(None, None, c_size_t(1), None), VALUE, "rl_backward(tensors)"),
    "rl_backward of nothing": (lambda t, out: C.rl_backward(None, None, c_size_t(0), None), VALUE, "(count)"),
    "rl_backward of null": (
        lambda t, out: C.rl_backward((c_void_p * 1)(), None, c_size_t(1), None), VALUE, "tensor 0 must not be null"),
    "rl_backward options": (
        lambda t, out: C.rl_backward((c_void_p * 1)(t.value), None, c_size_t(1), byref(BackwardOptions(8))),
        VALUE, "rl_backward(options.struct_size)"),
    "rl_backward inputs": (
        lambda t, out: C.rl_backward(
            (c_void_p * 1)(t.value), None, c_size_t(1),
            byref(BackwardOptions(sizeof(BackwardOptions), 0, 0, cast((c_void_p * 1)(t.value), c_void_p), 0))),
        VALUE, "rl_backward(options.num_inputs)"),
    "rl_generator_new": (lambda t, out: C.rl_generator_new(1, None), VALUE, "rl_generator_new(result)"),
    "rl_call": (lambda t, out: C.rl_call(None, None, c_size_t(0), None, c_size_t(0)), VALUE, "rl_call(name)"),
    "rl_operator_at": (lambda t, out: C.rl_operator_at(c_size_t(0), None), VALUE, "rl_operator_at(info)"),
    "rl_operator_at index": (
        lambda t, out: C.rl_operator_at(c_size_t(10**6), byref(OperatorInfo(sizeof(OperatorInfo)))), INDEX, "1000000 is"),
    "rl_operator_at size": (lambda t, out: C.rl_operator_at(c_size_t(0), byref(OperatorInfo(9))), VALUE, "got 9"),
    "rl_operator_find": (lambda t, out: C.rl_operator_find(b"addd", byref(OperatorInfo())), RUNTIME, "did you mean 'add'"),
    "rl_operator_find name": (lambda t, out: C.rl_operator_find(None, byref(OperatorInfo())), VALUE, "(name)"),
    "rl_operator_find info": (lambda t, out: C.rl_operator_find(b"add", None), VALUE, "rl_operator_find(info)"),
    **{
        f"rl_tensor_from_array {name}": (
            lambda t, out, c=changes: C.rl_tensor_from_array(byref(new(**c)), out), VALUE, message,
        )
        for name, changes, message in (
            ("struct_size", {"struct_size": 8}, "(array).struct_size: must be at least 64, got 8"),
            ("dtype", {"dtype": 99}, "(array).dtype: must be an rl_dtype, got 99"),
            ("ndim", {"ndim": 65}, "(array).ndim: must be from 0 to 64, got 65"),
            ("sizes", {"sizes": None}, "(array).sizes: must not be null"),
            ("negative size", {"sizes": (c_int64 * 2)(-1, 3)}, "(array).sizes: sizes must be at least 0"),
            ("huge size", {"sizes": (c_int64 * 2)(2**62, 3)}, "(array).sizes"),
            ("huge memory", {"sizes": (c_int64 * 2)(2**60, 3), "strides": None}, "larger than any memory"),
            ("stride", {"strides": (c_int64 * 2)(-3, 1)}, "the stride of dimension 0 must be at least 0"),
            ("huge stride", {"strides": (c_int64 * 2)(2**63 - 1, 1)}, "(array)."),
            ("data", {"data": None}, "(array).data: must not be null"),
            ("flags", {"flags": 6}, "(array).flags: must be 0 or RL_READ_ONLY, got 0x6"),
            ("alignment", {"data": X.data_ptr() + 1, "sizes": (c_int64 * 2)(1, 1)},
             "(array).data: memory of float32 must be aligned to 4 bytes"),
        )
    },
}  # fmt: skip
# Functions that only return a value, or that free a pointer which may be null.
CANNOT_FAIL = {
    "rl_c_version", "rl_error_text", "rl_error_status", "rl_operator_count", "rl_grad_mode", "rl_set_grad_mode",
    "rl_array_free", "rl_tensor_free", "rl_generator_free", "rl_value_free",
    "rl_manual_seed",  # fails only if there are two copies of the library; see test_c_programs.py
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_statuses(name: str) -> None:
    call, status, message = FAILURES[name]
    tensor, out = handle(X), c_void_p()
    assert call(tensor, byref(out)) == status == C.rl_error_status()
    assert message in text()
    assert not out.value
    C.rl_tensor_free(tensor)


STRUCTS = {"rl_array*": Array, "rl_tensor_info*": Info, "rl_operator_info*": OperatorInfo}
PROTOTYPES = prototypes()


def is_result(parameter: str) -> bool:
    return re.search(r"[*] ?(result|results|info|result_\w+)$", parameter) is not None


@pytest.mark.parametrize("name", sorted(n for n, given in PROTOTYPES.items() if any(map(is_result, given))))
def test_a_result_is_empty_where_a_call_fails(name: str) -> None:
    """A result is null or zero, so that it may be freed, even if the function refuses an earlier argument."""
    parameters = PROTOTYPES[name]
    for position in filter(lambda i: is_result(parameters[i]), range(len(parameters))):
        kind = parameters[position].rsplit(" ", 1)[0]
        memory = (c_uint64 * 32)(*[0x5555555555555555] * 32)
        if kind in STRUCTS:
            memory[0] = sizeof(STRUCTS[kind])
        given = [
            c_double(0) if p.startswith("double ") else c_size_t(10**6 if p == "size_t index" else 0)
            for p in parameters
        ]
        given[position] = memory
        if position + 1 < len(parameters) and parameters[position + 1].startswith("size_t num_"):
            given[position + 1] = c_size_t(1)
        if getattr(C, name)(*given) == OK:
            (C.rl_generator_free if name == "rl_generator_new" else C.rl_tensor_free)(c_void_p(memory[0]))
        elif kind in STRUCTS:
            size = sizeof(STRUCTS[kind])
            assert memory[: size // 8] == [size] + [0] * (size // 8 - 1)
        elif kind == "rl_value*":
            assert not any(memory[: sizeof(Value) // 8])
        else:
            assert memory[0] & (0xFFFFFFFF if kind == "int32_t*" else 2**64 - 1) == 0


def test_memory_is_released_where_a_tensor_cannot_be_made() -> None:
    freed: list[int] = []
    release = Releaser(freed.append)
    out = c_void_p()
    for i, changes in enumerate(({"dtype": 99}, {"ndim": -1}, {"data": None}), 1):
        assert C.rl_tensor_from_array(byref(new(release=release, context=i, **changes)), byref(out)) == VALUE
    assert C.rl_tensor_from_array(byref(new(release=release, context=4)), None) == VALUE
    assert freed == [1, 2, 3, 4]


def test_tensors_without_memory_of_the_host() -> None:
    keep: list[Any] = []
    given, out = (Value * 5)(value((2,), keep), Value(), Value(), Value(), Value()), (Value * 1)()
    schema = OperatorInfo(sizeof(OperatorInfo))
    check(C.rl_operator_find(b"zeros", byref(schema)))
    parameters = [
        part.split()[0] for part in schema.schema.decode().split("(", 1)[1].replace("*, ", "").split(", ")
    ]
    at = parameters.index("device?")
    given[at].kind, given[at].as_.device.type, given[at].as_.device.index = 7, 2, -1
    check(C.rl_call(b"zeros", given, at + 1, out, 1))
    seen = Array(sizeof(Array))
    assert C.rl_tensor_to_array(c_void_p(out[0].as_.tensor), byref(seen)) == TYPE
    assert "must be a tensor on the CPU, got one on meta" in text()
    assert not seen.data
    C.rl_value_free(out)


def test_null_may_be_freed() -> None:
    for name in ("rl_array_free", "rl_tensor_free", "rl_generator_free", "rl_value_free"):
        getattr(C, name)(None)
    C.rl_array_free(byref(Array()))
    assert C.rl_c_version() == 1


def test_backward_needs_a_provider() -> None:
    """Core alone has no provider of gradients; the tests of autograd run backward passes."""
    program = """
import rushlight_core
from c_interface import C, handle
from ctypes import c_size_t, c_void_p
import rushlight_core as core
x = handle(core.ones(1))
assert C.rl_backward((c_void_p * 1)(x.value), None, c_size_t(1), None) == 1
print(C.rl_error_text().decode())
"""
    import sys

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stderr
    assert "rl_autograd_initialize()" in done.stdout


def test_the_list_of_symbols_is_frozen() -> None:
    """Removing a function would break programs. New functions must be added to symbols.txt."""
    command = ["nm", "-D", "--defined-only", str(folder() / "librushlight.so")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert sorted(n for n in (line.split()[-1] for line in lines) if n.startswith("rl_")) == SYMBOLS


def test_every_function_has_a_test_that_makes_it_fail() -> None:
    """The functions of operators are tested in test_c_operators.py."""
    failing = {name.split()[0] for name in FAILURES} | CANNOT_FAIL
    assert failing == {name for name in SYMBOLS if not name.startswith("rl_op_")}
