"""rushlight.h for ctypes: structs, the library, and conversions of Python values to C values."""

from __future__ import annotations

import ctypes
import re
from ctypes import POINTER, byref, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p, sizeof
from pathlib import Path
from typing import Any

import rushlight_core as core

OK, RUNTIME, VALUE, TYPE, INDEX, NOT_IMPLEMENTED, OUT_OF_MEMORY, OTHER, BUFFER, INTERRUPTED, LINALG = range(
    11
)
(NONE, BOOLEAN, INTEGER, REAL, COMPLEX, STRING, DTYPE, DEVICE, TENSOR, INTEGERS, TENSORS, GENERATOR) = range(
    12
)
DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 uint16 uint32 uint64 complex64 complex128 "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
)
DTYPES_OF_C = [getattr(core, name) for name in DTYPES.split()]
Releaser = ctypes.CFUNCTYPE(None, c_void_p)


class Array(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("dtype", c_int32),
        ("ndim", c_int32),
        ("sizes", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("data", c_void_p),
        ("release", Releaser),
        ("context", c_void_p),
        ("flags", c_uint64),
    ]


class Device(ctypes.Structure):
    _fields_ = [("type", c_int32), ("index", c_int32)]


class Info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("dtype", c_int32),
        ("ndim", c_int32),
        ("sizes", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("numel", c_int64),
        ("device", Device),
        ("requires_grad", c_int32),
        ("is_leaf", c_int32),
        ("is_contiguous", c_int32),
        ("is_read_only", c_int32),
    ]


class OperatorInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", ctypes.c_char_p),
        ("schema", ctypes.c_char_p),
        ("hash", c_uint64),
        ("num_arguments", c_size_t),
        ("num_required", c_size_t),
        ("num_results", c_size_t),
    ]


class BackwardOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("retain_graph", c_int32),
        ("create_graph", c_int32),
        ("inputs", c_void_p),
        ("num_inputs", c_size_t),
    ]


class ComplexNumber(ctypes.Structure):
    _fields_ = [("real", c_double), ("imaginary", c_double)]


class Payload(ctypes.Union):
    _fields_ = [
        ("integer", c_int64),
        ("real", c_double),
        ("complex", ComplexNumber),
        ("device", Device),
        ("string", ctypes.c_char_p),
        ("integers", POINTER(c_int64)),
        ("tensor", c_void_p),
        ("tensors", POINTER(c_void_p)),
        ("generator", c_void_p),
    ]


class Value(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("reserved", c_int32), ("count", c_size_t), ("as_", Payload)]


def folder() -> Path:
    """Return the folder of the librushlight.so that this process has loaded."""
    found = re.search(r"(/\S.*)/librushlight\.so$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    assert found
    return Path(found[1])


def includes() -> list[Path]:
    """Return the folders of the headers: installed, or in the source and build trees of an editable package."""
    installed = Path(core.__path__[0]) / "include"
    tree = [Path(__file__).parents[2] / "include", folder().parents[1] / "generated" / "include"]
    site = folder().parent / "include"
    return next(p for p in ([installed], [site], tree) if (p[0] / "rushlight" / "tensor.h").exists())


def prototypes() -> dict[str, list[str]]:
    """Return the parameters of each function of the header that returns a status."""
    header = next(p for p in (i / "rushlight" / "rushlight.h" for i in includes()) if p.exists()).read_text()
    code = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL))
    found = re.findall(r"rl_status (rl_\w+)\(([^)]*)\);", code)
    return {name: [] if given == "void" else given.split(", ") for name, given in found}


def load() -> Any:
    library = ctypes.CDLL(str(folder() / "librushlight.so"))
    library.rl_error_text.restype = ctypes.c_char_p
    library.rl_operator_count.restype = c_size_t
    for name in ("rl_array_free", "rl_tensor_free", "rl_generator_free", "rl_value_free"):
        getattr(library, name).restype = None
    library.rl_tensor_free.argtypes = library.rl_generator_free.argtypes = [c_void_p]
    library.rl_manual_seed.argtypes = [c_uint64]
    library.rl_generator_new.argtypes = [c_uint64, c_void_p]
    return library


C = load()


def check(status: int) -> None:
    assert status == OK, C.rl_error_text().decode()


def array(tensor: Any, **changes: Any) -> Array:
    """Return the struct of a tensor's memory, which the tensor still owns."""
    sizes, strides = ((c_int64 * tensor.ndim)(*numbers) for numbers in (tensor.shape, tensor.stride()))
    made = Array(sizeof(Array), DTYPES_OF_C.index(tensor.dtype), tensor.ndim, sizes, strides)
    made.data = tensor.data_ptr() if tensor.numel() else None
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def handle(tensor: Any, **changes: Any) -> c_void_p:
    """Return the handle of a C tensor over the memory of a Python tensor."""
    made = c_void_p()
    check(C.rl_tensor_from_array(byref(array(tensor, **changes)), byref(made)))
    return made


def copied(handle: c_void_p) -> Any:
    """Return a copy of a C tensor."""
    seen = Array(sizeof(Array))
    check(C.rl_tensor_to_array(handle, byref(seen)))
    sizes, strides = seen.sizes[: seen.ndim], seen.strides[: seen.ndim]
    made = core.empty_strided(sizes, strides, dtype=DTYPES_OF_C[seen.dtype])
    ctypes.memmove(made.data_ptr(), seen.data, made.untyped_storage().nbytes())
    C.rl_array_free(byref(seen))
    return made.contiguous()


def value(given: Any, keep: list[Any]) -> Value:
    """Return a C argument. Objects that it refers to are appended to `keep`; the caller frees handles of tensors."""
    made = Value()
    if isinstance(given, bool):
        made.kind, made.as_.integer = BOOLEAN, given
    elif isinstance(given, int):
        made.kind, made.as_.integer = INTEGER, given
    elif isinstance(given, float):
        made.kind, made.as_.real = REAL, given
    elif isinstance(given, complex):
        made.kind, made.as_.complex = COMPLEX, ComplexNumber(given.real, given.imag)
    elif isinstance(given, str):
        made.kind, made.count, made.as_.string = STRING, len(given), given.encode()
    elif isinstance(given, core.dtype):
        made.kind, made.as_.integer = DTYPE, DTYPES_OF_C.index(given)
    elif isinstance(given, core.Tensor):
        made.kind, made.as_.tensor = TENSOR, handle(given).value
        keep.append(c_void_p(made.as_.tensor))
    elif isinstance(given, (list, tuple)) and all(isinstance(item, int) for item in given):
        made.kind, made.count, made.as_.integers = INTEGERS, len(given), (c_int64 * len(given))(*given)
    elif isinstance(given, (list, tuple)):
        handles = [handle(item) if item is not None else c_void_p() for item in given]
        keep += handles
        made.kind, made.count = TENSORS, len(given)
        made.as_.tensors = (c_void_p * len(given))(*handles)
    else:
        assert given is None, given
    return made
