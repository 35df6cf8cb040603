"""Gradients from C: rl_autograd_initialize, and rl_backward of core. Functions are called with ctypes."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p, sizeof
from pathlib import Path
from typing import Any

import pytest

import rushlight_autograd  # noqa: F401
import rushlight_core as core


class Array(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("dtype", c_int32), ("ndim", c_int32), ("sizes", POINTER(c_int64)),
        ("strides", POINTER(c_int64)), ("data", c_void_p), ("release", c_void_p), ("context", c_void_p),
        ("flags", ctypes.c_uint64),
    ]  # fmt: skip


class Payload(ctypes.Union):
    _fields_ = [("tensor", c_void_p), ("real", c_double), ("largest", c_double * 2)]


class Value(Structure):
    _fields_ = [("kind", c_int32), ("reserved", c_int32), ("count", c_size_t), ("as_", Payload)]


class Options(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("retain_graph", c_int32), ("create_graph", c_int32), ("inputs", c_void_p),
        ("num_inputs", c_size_t),
    ]  # fmt: skip


def library(name: str) -> Any:
    found = re.search(rf"(/\S.*/{name})$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    assert found
    return ctypes.CDLL(found[1])


C = library("librushlight.so")
C.rl_error_text.restype = c_char_p
C.rl_tensor_free.argtypes = [c_void_p]
KEPT: list[Any] = []  # owns the memory of tensors that C functions use
GRADIENTS = library("librushlight_autograd.so")


def check(status: int) -> None:
    assert status == 0, C.rl_error_text().decode()


def leaf(tensor: Any) -> c_void_p:
    """Return a handle of a tensor that shares the memory of `tensor` and requires grad."""
    made = c_void_p()
    KEPT.append(tensor)
    sizes = (c_int64 * tensor.ndim)(*tensor.shape)
    check(
        C.rl_tensor_from_array(
            byref(Array(sizeof(Array), 8, tensor.ndim, sizes, None, tensor.data_ptr())), byref(made)
        )
    )
    check(C.rl_tensor_set_requires_grad(made, 1))
    return made


def call(name: str, *tensors: c_void_p) -> c_void_p:
    given = (Value * len(tensors))()
    for one, tensor in zip(given, tensors, strict=True):
        one.kind, one.as_.tensor = 8, tensor.value
    out = Value()
    check(C.rl_call(name.encode(), given, c_size_t(len(tensors)), byref(out), c_size_t(1)))
    return c_void_p(out.as_.tensor)


def gradient(of: c_void_p) -> list[float] | None:
    found, seen = c_void_p(), Array(sizeof(Array))
    check(C.rl_tensor_grad(of, byref(found)))
    if not found.value:
        return None
    check(C.rl_tensor_to_array(found, byref(seen)))
    numbers = ctypes.cast(seen.data, POINTER(ctypes.c_float))[:3]
    C.rl_array_free(byref(seen))
    C.rl_tensor_free(found)
    return numbers


def test_gradients_accumulate_and_are_taken_away() -> None:
    check(GRADIENTS.rl_autograd_initialize())
    x = leaf(core.tensor([1.0, 2.0, 3.0]))
    for total in (1, 2):
        loss = call("sum", call("square", x))
        check(C.rl_backward((c_void_p * 1)(loss.value), None, c_size_t(1), None))
        assert gradient(x) == [2 * total, 4 * total, 6 * total]
    check(C.rl_tensor_set_grad(x, None))
    assert gradient(x) is None
    C.rl_tensor_free(x)


def test_gradients_of_results_inputs_and_second_passes() -> None:
    x, y = leaf(core.tensor([1.0, 2.0, 3.0])), leaf(core.ones(3))
    product = call("mul", call("mul", x, x), y)
    weight = leaf(core.tensor([1.0, 0.0, 2.0]))
    options = Options(sizeof(Options), 1, 0, ctypes.cast((c_void_p * 1)(x.value), c_void_p), 1)
    outputs, gradients = (c_void_p * 1)(product.value), (c_void_p * 1)(weight.value)
    check(C.rl_backward(outputs, gradients, c_size_t(1), byref(options)))
    assert gradient(x) == [2, 0, 12]
    assert gradient(y) is None
    check(C.rl_backward(outputs, gradients, c_size_t(1), None))
    assert (gradient(x), gradient(y)) == ([4, 0, 24], [1, 0, 18])


def test_nothing_is_recorded_without_the_mode() -> None:
    x = leaf(core.ones(1))
    assert C.rl_set_grad_mode(0) == 1
    loss = call("square", x)
    assert C.rl_set_grad_mode(1) == 0
    assert C.rl_backward((c_void_p * 1)(loss.value), None, c_size_t(1), None) == 1
    assert "does not require grad" in C.rl_error_text().decode()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda x: (call("square", x), None), "outputs of one element"),
        (lambda x: (call("square", x), leaf(core.ones(5))), "shape"),
    ],
)
def test_passes_that_cannot_begin(make: Any, text: str) -> None:
    output, start = make(leaf(core.ones(3)))
    starts = None if start is None else (c_void_p * 1)(start.value)
    assert C.rl_backward((c_void_p * 1)(output.value), starts, c_size_t(1), None) == 1
    assert text in C.rl_error_text().decode()


def test_tensors_that_require_grad_are_not_exported() -> None:
    x, out = leaf(core.ones(3)), c_void_p()
    assert C.rl_tensor_to_dlpack(x, byref(out)) == 8
    assert "requires grad" in C.rl_error_text().decode()


def test_initialize_fails_beside_another_copy_of_core(tmp_path: Path) -> None:
    copy = tmp_path / "librushlight.so"
    copy.write_bytes(Path(C._name).read_bytes())
    program = f"""
from ctypes import CDLL, RTLD_GLOBAL
CDLL({str(copy)!r})
assert CDLL({C._name!r}).rl_error_status() == 0
assert CDLL({GRADIENTS._name!r}).rl_autograd_initialize() == 1
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_list_of_symbols_is_frozen() -> None:
    command = ["nm", "-D", "--defined-only", GRADIENTS._name]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    names = [line.split()[-1] for line in lines]
    assert [name for name in names if name.startswith("rl_")] == ["rl_autograd_initialize"]
