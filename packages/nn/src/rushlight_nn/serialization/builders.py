"""The table of the names that a pickle of data may use, with the object to which each name refers.

A name is a key of :data:`_NAMES`. It refers to a class, or to a function of this module, that makes a value from plain
arguments. A class may also be used as a value, for example as the factory of a defaultdict. Only the classes and functions
in :data:`_CALLS` may be called.
"""

from __future__ import annotations

import datetime
import functools
import pathlib
import sys
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from types import FunctionType

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core._other_dtypes import OTHERS

from ..parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from . import trust
from .deferred import defer
from .errors import Budget, FormatError
from .keys import Keys
from .machine import cost_of_items
from .sparse import COMPRESSED, rebuild_sparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

# The largest number of dimensions of a tensor in core.
MAX_DIMENSIONS = 64

# PyTorch's names for typed memory.
STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}


# PyTorch's storages of quantized tensors, with their dtypes, and its quantization schemes. Rushlight does not support
# quantized tensors. With these names, the error can state that the file contains them.
QUANTIZED_STORAGES = {
    "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2",
    "QUInt2x4Storage": "quint2x4",
}
QUANTIZATION_SCHEMES = (
    "per_tensor_affine",
    "per_tensor_symmetric",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_channel_affine_float_qparams",
)

# Dtypes without a typed storage.
OF_UNTYPED_STORAGES = (
    *("uint16", "uint32", "uint64"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
)

#: All dtypes by name: the dtypes of tensors, and dtypes that core has only as names.
DTYPES: dict[str, Any] = dict(OTHERS)
for _name in (*STORAGES.values(), *OF_UNTYPED_STORAGES):
    DTYPES[_name] = getattr(core, _name)


class StorageType:
    """A storage class of PyTorch.

    `dtype` is None for the untyped storage class. For a quantized storage class, which is not supported, `dtype` is a
    string.
    """

    def __init__(self, name: str, dtype: Any) -> None:
        self.name = name
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"<PyTorch's class {self.name}>"


class QuantizationScheme:
    """A placeholder for a quantization scheme of PyTorch."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<PyTorch's quantization scheme {self.name}>"


class Described:
    """A user-defined class that a file describes.

    If `fields` is a list of names, the class is a named tuple with these fields. If `fields` is None, the class is an
    enumeration.
    """

    def __init__(self, name: str, fields: Any) -> None:
        if fields is not None and not (isinstance(fields, list) and all(type(f) is str for f in fields)):
            raise FormatError(
                f"the description of the class {name!r:.80} must be None or a list of the names of its fields"
            )
        self.name = name
        self.fields = fields

    def make(self, arguments: tuple[Any, ...]) -> Any:
        """Return the value that represents an instance of the class."""
        count = 1 if self.fields is None else len(self.fields)
        if len(arguments) != count:
            raise FormatError(f"a {self.name:.80} must be built from {count} values, got {len(arguments)}")
        return arguments[0] if self.fields is None else tuple_class(self.name, tuple(self.fields))(*arguments)


@functools.lru_cache(256)
def tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    """Return a named tuple class; only the part of `name` after the last dot is used.

    Raises:
        ValueError: a name is not valid for a class or a field, or there are more than 255 fields.
    """
    if len(fields) > 255:
        raise ValueError(f"a named tuple has {len(fields)} fields, needs at most 255")
    return namedtuple(name.rpartition(".")[2], fields)


class UnknownName(FormatError):  # noqa: N818
    """A name that is not in the table."""


# Tensors ----------------------------------------------------------------------------------------------------


def check_geometry(shape: Any, strides: Any, offset: Any) -> None:
    """Check that a tensor can have these sizes, strides and offset. Python's ints are used, since they do not overflow.

    Raises:
        FormatError: the sizes, strides or offset are not valid.
    """
    for values in (shape, strides, (offset,)):
        if not isinstance(values, (tuple, list)) or len(values) > MAX_DIMENSIONS:
            raise FormatError(
                f"the sizes and the strides of a tensor must be tuples or lists of at most {MAX_DIMENSIONS} numbers"
            )
        if not all(type(v) is int and 0 <= v < 2**62 for v in values):
            raise FormatError(
                "a tensor has a size, stride or offset that is not an integer from 0 to 2**62 - 1"
            )
    if len(shape) != len(strides):
        raise FormatError(
            f"a tensor must have as many strides as sizes, got {len(strides)} strides and {len(shape)} sizes"
        )
    count = 1
    for size in shape:
        count *= size
    if count >= 2**59:
        raise FormatError(f"a tensor of shape {tuple(shape)} is larger than any memory")


def tensor_over(storage: Any, dtype: Any, shape: Any, strides: Any, offset: Any) -> Tensor:
    """Return a tensor over the bytes of `storage`, after checking all arguments.

    Raises:
        FormatError: the sizes, strides or offset are not valid or reach beyond the storage, or the dtype is not supported.
    """
    check_geometry(shape, strides, offset)
    if not isinstance(dtype, core.dtype):
        raise FormatError(f"a tensor has dtype {dtype}, which rushlight-core does not support")
    if 0 not in shape:
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        if (last + 1) * dtype.itemsize > storage.nbytes():
            raise FormatError(
                f"a tensor of shape {tuple(shape)} reaches beyond the end of its storage of {storage.nbytes()} bytes"
            )
    else:
        offset = 0
    return core._C._tensor_over(storage, dtype, list(shape), list(strides), offset)


def check_bools(storage: Any) -> None:
    """Check that all bytes are 0 or 1. Operators that count bools would return wrong results for other bytes.

    Raises:
        FormatError: a byte is neither 0 nor 1.
    """
    count = storage.nbytes()
    if count and int(core._C._tensor_over(storage, core.uint8, [count], [1], 0).max()) > 1:
        raise FormatError("a tensor of bools holds bytes other than 0 and 1")


def _check_flags(tensor: Tensor, requires_grad: Any) -> bool:
    if type(requires_grad) is not bool:
        raise FormatError(
            f"requires_grad of a tensor must be True or False, got {type(requires_grad).__name__}"
        )
    if requires_grad and not (tensor.is_floating_point() or tensor.is_complex()):
        raise FormatError(
            f"a tensor of dtype {tensor.dtype} has requires_grad=True, but only floating-point and complex tensors "
            "can require gradients: the file was altered"
        )
    return requires_grad


def _rebuild(
    budget: Budget, storage: Any, dtype: Any, offset: Any, size: Any, stride: Any, grad: Any, metadata: Any
) -> Tensor:
    stored = tensor_over(storage, dtype, size, stride, offset)
    flags = metadata if isinstance(metadata, dict) else {}
    conj, neg = bool(flags.get("conj")), bool(flags.get("neg"))
    if conj or neg:  # the tensor is computed in new memory, which may be larger than its storage
        budget.charge(stored.nbytes)

    def resolve() -> Tensor:
        tensor = stored.conj() if conj else stored
        return tensor.neg() if neg else tensor

    @core.no_grad()
    def fill() -> None:
        tensor.copy_(resolve())

    tensor = resolve()
    if tensor is not stored:
        defer(fill)
    return tensor.requires_grad_() if _check_flags(tensor, grad) else tensor


def _typed(storage: Any) -> Any:
    if type(storage) is not core.TypedStorage:
        raise FormatError("a tensor must be built from a storage that has a dtype: the file was altered")
    return storage


def rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    storage = _typed(storage)
    return tensor_over(storage.untyped(), storage.dtype, size, stride, offset)


def rebuild_tensor_v2(
    budget: Budget,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    grad: Any,
    hooks: Any,
    metadata: Any = None,
) -> Tensor:
    return _rebuild(budget, _typed(storage).untyped(), storage.dtype, offset, size, stride, grad, metadata)


def rebuild_tensor_v3(
    budget: Budget,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    if type(storage) is not core.UntypedStorage:
        raise FormatError("a tensor must be built from a storage of bytes: the file was altered")
    if dtype == core.bool:  # storages of bools are checked when they are read
        raise FormatError("a tensor of bools must be built from a storage of bools: the file was altered")
    return _rebuild(budget, storage, dtype, offset, size, stride, grad, metadata)


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Parameter:
    if not isinstance(data, Tensor):
        raise FormatError(f"a parameter must be built from a tensor, got {type(data).__name__}")
    parameter = Parameter(data.detach(), requires_grad=_check_flags(data, requires_grad))
    if state:
        _set_attributes(parameter, state)
    return parameter


def rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    check_geometry(size, stride, 0)
    if not isinstance(dtype, core.dtype):
        raise FormatError(f"a tensor has dtype {dtype}, which rushlight-core does not support")
    tensor = core.empty_strided(list(size), list(stride), dtype=dtype, device="meta")
    return tensor.requires_grad_() if _check_flags(tensor, requires_grad) else tensor


def rebuild_on_device(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    raise FormatError(
        f"a tensor was saved in a format that only the device {device!s:.40} has\nhint: save tensor.cpu()"
    )


def rebuild_typed(budget: Budget, function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    if not any(function is one for one in _TENSORS) or type(arguments) is not tuple:
        raise FormatError("a tensor is built by a function that does not return tensors")
    tensor = function(budget, *arguments) if function in _OF_BUDGET else function(*arguments)
    if isinstance(state, dict) and state.get("_is_buffer") is True and kind is Tensor:
        buffer = Buffer(tensor.detach(), persistent=state.get("persistent") is not False)
        return buffer.requires_grad_(tensor.requires_grad)
    if kind not in (Tensor, Parameter):
        if not (isinstance(kind, type) and issubclass(kind, Tensor) and trust.is_allowed(kind)):
            raise FormatError(f"a tensor is of the class {kind!r:.80}, which is not allowed")
        tensor = tensor.as_subclass(kind)
    if state:
        _set_attributes(tensor, state)
    return tensor


def refuse_quantized(*arguments: Any) -> NoReturn:
    raise FormatError(
        "the file holds a quantized tensor, which rushlight does not support\nhint: save tensor.dequantize()"
    )


def layout(name: Any) -> Any:
    found = {
        "torch.strided": core.strided,
        "torch.sparse_coo": core.sparse_coo,
        **{str(each): each for each in COMPRESSED},
    }
    if name not in found:
        raise FormatError(f"the file holds a tensor of layout {name!r:.80}, which rushlight does not support")
    return found[name]


def device(*arguments: Any) -> Any:
    if not arguments or len(arguments) > 2 or type(arguments[0]) is not str:
        raise FormatError("a device must be built from its name and, optionally, its index")
    return core.device(*arguments)


def size(values: Any = ()) -> Any:
    if not isinstance(values, (tuple, list)) or not all(type(v) is int for v in values):
        raise FormatError("a torch.Size must be built from a tuple or list of ints")
    return core.Size(values)


def _set_attributes(value: Any, state: Any) -> None:
    """Set the attributes in the dictionary `state` on `value`. Refuse names that are attributes of the class of `value`."""
    if not isinstance(state, dict):
        raise FormatError(
            f"the state of a {type(value).__name__} must be a dictionary, got {type(state).__name__}"
        )
    for name in state:
        if type(name) is not str or name.startswith("__") or hasattr(type(value), name):
            raise FormatError(
                f"the state of a {type(value).__name__} sets {name!r:.80}, which is not a name of an instance attribute"
            )
    vars(value).update(state)


# Python's values --------------------------------------------------------------------------------------------


def ordered_dict(keys: Keys, items: Any = ()) -> Any:
    return OrderedDict(_pairs(keys, items))


def counter(keys: Keys, items: Any = ()) -> Any:
    found = _pairs(keys, items)
    return Counter(found if isinstance(found, dict) else dict(found))


def _pairs(keys: Keys, items: Any) -> Any:
    if type(items) is dict:
        keys.check(items)
        return items
    if not isinstance(items, (list, tuple)) or not all(
        isinstance(p, (list, tuple)) and len(p) == 2 for p in items
    ):
        raise FormatError(
            f"a dictionary must be built from a list or tuple of pairs, got {type(items).__name__}"
        )
    keys.check(key for key, _ in items)
    return items


_FACTORIES = (None, dict, list, set, tuple, int, float, bool, str, OrderedDict)


def default_dict(factory: Any = None) -> Any:
    if not any(factory is one for one in _FACTORIES) and not trust.is_allowed(factory):
        raise FormatError(f"a defaultdict has the factory {factory!r:.80}, which is not allowed")
    return defaultdict(factory)


def plain_set(keys: Keys, items: Any = ()) -> Any:
    return set(_checked(keys, items))


def plain_frozenset(keys: Keys, items: Any = ()) -> Any:
    return frozenset(_checked(keys, items))


def _checked(keys: Keys, items: Any) -> Any:
    if not isinstance(items, (list, tuple)):
        raise FormatError(f"a set must be built from a list or tuple, got {type(items).__name__}")
    keys.check(items)
    return items


def plain_list(items: Any = ()) -> Any:
    if not isinstance(items, (list, tuple)):
        raise FormatError(f"a list or deque must be built from a list or tuple, got {type(items).__name__}")
    return list(items)


def plain_deque(items: Any = (), maxlen: Any = None) -> Any:
    return deque(plain_list(items), maxlen)


def encode(text: Any, encoding: Any = "latin1") -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise FormatError("bytes must be built from a string and the encoding latin-1")
    return text.encode("latin-1")


def plain_bytes(data: Any = b"") -> bytes:
    if type(data) is not bytes:
        raise FormatError(f"bytes must be built from bytes or a string, got {type(data).__name__}")
    return data


def plain_bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    return bytearray(encode(data, encoding) if type(data) is str else plain_bytes(data))


def plain_complex(real: Any = 0.0, imag: Any = 0.0) -> complex:
    if type(real) is not float or type(imag) is not float:
        raise FormatError("a complex number must be built from floats")
    return complex(real, imag)


def plain_slice(*arguments: Any) -> slice:
    if not all(v is None or type(v) is int for v in arguments):
        raise FormatError("a slice must be built from ints")
    return slice(*arguments)


def plain_range(*arguments: Any) -> range:
    if not all(type(v) is int for v in arguments):
        raise FormatError("a range must be built from ints")
    return range(*arguments)


def namespace(*arguments: Any) -> Namespace:
    if arguments:
        raise FormatError(f"a Namespace must be built without arguments, got {len(arguments)}")
    return Namespace()


def _path_of(kind: type) -> Callable[..., Any]:
    def build(*parts: Any) -> Any:
        if not all(type(part) is str for part in parts):
            raise FormatError("a path must be built from strings")
        return kind(*parts)

    return build


path: Callable[..., Any] = _path_of(pathlib.Path)
windows_path: Callable[..., Any] = _path_of(pathlib.PureWindowsPath)
pure_path: Callable[..., Any] = _path_of(pathlib.PurePosixPath)


def date_time(data: Any, zone: Any = None) -> datetime.datetime:
    data = _octets(data, 10)
    year, microsecond = (data[0] << 8) + data[1], int.from_bytes(data[7:], "big")
    made = datetime.datetime(year, data[2] & 127, data[3], data[4], data[5], data[6], microsecond)
    return made.replace(tzinfo=_zone(zone), fold=data[2] >> 7)


def date(data: Any) -> datetime.date:
    data = _octets(data, 4)
    return datetime.date((data[0] << 8) + data[1], data[2], data[3])


def time(data: Any, zone: Any = None) -> datetime.time:
    data = _octets(data, 6)
    made = datetime.time(data[0] & 127, data[1], data[2], int.from_bytes(data[3:], "big"))
    return made.replace(tzinfo=_zone(zone), fold=data[0] >> 7)


def duration(days: Any = 0, seconds: Any = 0, microseconds: Any = 0) -> datetime.timedelta:
    if not all(type(v) is int for v in (days, seconds, microseconds)):
        raise FormatError("a timedelta must be built from ints")
    return datetime.timedelta(days, seconds, microseconds)


def time_zone(offset: Any, name: Any = None) -> datetime.timezone:
    return datetime.timezone(offset) if name is None else datetime.timezone(offset, name)


def _octets(data: Any, count: int) -> bytes:
    if type(data) is not bytes or len(data) != count:
        raise FormatError(f"a date or a time must be built from {count} bytes")
    return data


def _zone(zone: Any) -> Any:
    if zone is not None and type(zone) is not datetime.timezone:
        raise FormatError(f"a time zone must be a datetime.timezone, got {type(zone).__name__}")
    return zone


# NumPy's values -----------------------------------------------------------------------------------------------


class ArrayType:
    """A placeholder for numpy.ndarray, so that NumPy is imported only for files that contain arrays."""


class DtypeType:
    """A placeholder for numpy.dtype."""


def numpy_dtype(name: Any, align: Any = False, copy: Any = True) -> Any:
    if type(name) is not str or not name[:1].isalpha() or len(name) > 12:
        raise FormatError("a NumPy dtype must be built from the name of a numeric dtype")
    import numpy

    # Create a new object, because its byte order is set afterwards.
    found = numpy.dtype(name, copy=True)
    if found.kind not in "biufc":
        raise FormatError(f"an array has the dtype {found}, which is not a numeric dtype")
    return found


def numpy_array(kind: Any, shape: Any, code: Any) -> Any:
    if kind is not ArrayType:
        raise FormatError("an array must be a numpy.ndarray")
    import numpy

    return numpy.empty(0)


def numpy_scalar(dtype: Any, data: Any) -> Any:
    import numpy

    if not isinstance(dtype, numpy.dtype) or type(data) is not bytes or len(data) != dtype.itemsize:
        raise FormatError("a NumPy number must be built from a numeric dtype and the bytes of one element")
    return numpy.frombuffer(data, dtype)[0]


def numpy_frombuffer(data: Any, dtype: Any, shape: Any, order: Any) -> Any:
    array = numpy_array(ArrayType, (0,), b"b")
    _fill_array(array, (1, shape, dtype, order == "F", bytes(data) if isinstance(data, bytearray) else data))
    return array


def _fill_array(array: Any, state: Any) -> None:
    import numpy

    if type(state) is not tuple or len(state) != 5:
        raise FormatError(
            "the state of an array must be a tuple of a version, a shape, a dtype, an order and bytes"
        )
    _, shape, dtype, fortran, data = state
    check_geometry(shape, [0] * len(shape) if isinstance(shape, (tuple, list)) else None, 0)
    if not isinstance(dtype, numpy.dtype) or type(data) is not bytes or type(fortran) is not bool:
        raise FormatError(
            "the state of an array must be a tuple of a version, a shape, a dtype, an order and bytes"
        )
    count = dtype.itemsize
    for n in shape:
        count *= n
    if len(shape) > 32 or count != len(data):
        raise FormatError(
            f"an array of shape {shape} and dtype {dtype} has {len(data)} bytes, needs {count} and at most 32 dimensions"
        )
    array.__setstate__((1, tuple(shape), dtype, fortran, data))


def _fill_dtype(dtype: Any, state: Any) -> None:
    if type(state) is not tuple or len(state) < 3 or state[1] not in ("<", ">", "|", "="):
        raise FormatError("the state of a NumPy dtype must be a tuple that contains the byte order")
    if dtype.itemsize > 1:
        dtype.__setstate__((3, state[1], None, None, None, -1, -1, 0))


# The table ------------------------------------------------------------------------------------------------------


def packed_sequence(*arguments: Any) -> Any:
    from ..utils.rnn import PackedSequence

    kinds = (Tensor, type(None))
    if not 1 <= len(arguments) <= 4 or not all(isinstance(value, kinds) for value in arguments):
        raise FormatError("a PackedSequence must be built from one to four tensors")
    return PackedSequence(*arguments)


def uninitialized(kind: Any) -> Callable[..., Any]:
    def build(requires_grad: Any = False, where: Any = None, dtype: Any = None, *rest: Any) -> Any:
        return kind(bool(requires_grad), where, dtype)

    return build


_TENSORS = (
    rebuild_tensor,
    rebuild_tensor_v2,
    rebuild_tensor_v3,
    rebuild_parameter,
    rebuild_meta,
    rebuild_sparse,
)

_NAMES: dict[str, Any] = {
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta,
    "torch._utils._rebuild_device_tensor_from_numpy": rebuild_on_device,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": rebuild_on_device,
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse,
    "torch._utils._rebuild_sparse_csr_tensor": rebuild_sparse,
    "torch._utils._rebuild_qtensor": refuse_quantized,
    "torch._tensor._rebuild_from_type_v2": rebuild_typed,
    "torch.serialization._get_layout": layout,
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.nn.parameter.Buffer": Buffer,
    "torch.nn.parameter.UninitializedParameter": UninitializedParameter,
    "torch.nn.parameter.UninitializedBuffer": UninitializedBuffer,
    "torch.device": core.device,
    "torch.Size": core.Size,
    "torch.nn.utils.rnn.PackedSequence": packed_sequence,
    "torch.storage.UntypedStorage": StorageType("UntypedStorage", None),
    "torch.strided": core.strided,
    "torch.sparse_coo": core.sparse_coo,
    **{str(each): each for each in COMPRESSED},
    "collections.OrderedDict": OrderedDict,
    "collections.defaultdict": defaultdict,
    "collections.Counter": Counter,
    "collections.deque": deque,
    "argparse.Namespace": Namespace,
    "_codecs.encode": encode,
    "datetime.datetime": date_time,
    "datetime.date": date,
    "datetime.time": time,
    "datetime.timedelta": duration,
    "datetime.timezone": time_zone,
    "numpy.ndarray": ArrayType,
    "numpy.dtype": DtypeType,
}
for _module in ("builtins", "__builtin__"):
    for _kind in (
        dict,
        list,
        set,
        frozenset,
        tuple,
        int,
        float,
        bool,
        str,
        bytes,
        bytearray,
        complex,
        slice,
        range,
    ):
        _NAMES[f"{_module}.{_kind.__name__}"] = _kind
_NAMES |= {"__builtin__.unicode": str, "__builtin__.long": int, "__builtin__.xrange": range}
for _module in ("pathlib", "pathlib._local"):
    _NAMES |= {f"{_module}.{_name}": path for _name in ("Path", "PosixPath")}
    _NAMES |= {f"{_module}.{_name}": windows_path for _name in ("WindowsPath", "PureWindowsPath")}
    _NAMES |= {f"{_module}.{_name}": pure_path for _name in ("PurePath", "PurePosixPath")}
for _module in ("numpy.core", "numpy._core"):
    _NAMES[f"{_module}.multiarray._reconstruct"] = numpy_array
    _NAMES[f"{_module}.multiarray.scalar"] = numpy_scalar
    _NAMES[f"{_module}.numeric._frombuffer"] = numpy_frombuffer
for _name, _dtype in STORAGES.items():
    _type = StorageType(_name, getattr(core, _dtype))
    _NAMES |= {f"torch.{_name}": _type, f"torch.cuda.{_name}": _type, f"torch.storage.{_name}": _type}

_NAMES |= {
    f"torch.{_name}": StorageType(_name, OTHERS[_dtype]) for _name, _dtype in QUANTIZED_STORAGES.items()
}
_NAMES |= {f"torch.{_name}": QuantizationScheme(_name) for _name in QUANTIZATION_SCHEMES}
_NAMES |= {f"torch.{_name}": _dtype for _name, _dtype in DTYPES.items()}

# A dictionary from each object that a pickle may call to the function that builds the value. A function of this module
# builds the value itself.
_CALLS: dict[Any, Callable[..., Any]] = {
    OrderedDict: ordered_dict,
    defaultdict: default_dict,
    Counter: counter,
    deque: plain_deque,
    Namespace: namespace,
    core.device: device,
    core.Size: size,
    ArrayType: lambda *a: numpy_array(ArrayType, *a),
    DtypeType: numpy_dtype,
    UninitializedParameter: uninitialized(UninitializedParameter),
    UninitializedBuffer: uninitialized(UninitializedBuffer),
    rebuild_sparse: rebuild_sparse,
    set: plain_set,
    frozenset: plain_frozenset,
    list: plain_list,
    bytes: plain_bytes,
    bytearray: plain_bytearray,
    complex: plain_complex,
    slice: plain_slice,
    range: plain_range,
}
for _value in list(_NAMES.values()):
    if getattr(_value, "__module__", None) == __name__ and not isinstance(
        _value, (type, StorageType, QuantizationScheme)
    ):
        _CALLS[_value] = _value

# Builders that store values in a dictionary or a set. They check the keys with `Keys`.
_OF_KEYS = (ordered_dict, counter, plain_set, plain_frozenset)
# Builders that may copy tensors. They charge the memory of the copies themselves.
_OF_BUDGET = (rebuild_tensor_v2, rebuild_tensor_v3, rebuild_typed)

_ERRORS = (
    ValueError,
    TypeError,
    RuntimeError,
    ArithmeticError,
    LookupError,
    AttributeError,
    MemoryError,
    NotImplementedError,
)


def _find(name: str) -> Any:
    """Return the object that `name` refers to, or None."""
    found = trust.allowed_by_name(name)
    return _NAMES.get(name) if found is None else found


# The memory in bytes of an empty container that a call creates; :func:`cost_of_items` returns the memory of its
# items.
_EMPTY: dict[Any, int] = {
    set: 240,
    frozenset: 240,
    deque: 780,
    OrderedDict: 160,
    Counter: 120,
    defaultdict: 100,
    list: 80,
}


def _cost(function: Any, arguments: Any) -> int:
    """Return an upper bound of the memory of `function(*arguments)`, if `function` copies each argument at most once."""
    texts = sum(2 * len(value) for value in arguments if isinstance(value, (str, bytes, bytearray)))
    items = sum(len(v) for v in arguments if isinstance(v, (list, tuple, dict, set, frozenset)))
    if isinstance(function, type) and function in (list, deque):
        return _EMPTY[function] + 9 * items
    if isinstance(function, type) and function in _EMPTY:
        pairs = function in (OrderedDict, Counter) and not (arguments and isinstance(arguments[0], dict))
        return _EMPTY[function] + cost_of_items(function, 0, items) + (90 * items if pairs else 0)
    return 300 + texts + 120 * items


class Names:
    """The table of names of a :class:`~.machine.Machine`.

    Args:
        persistent: a function that returns the storage for a persistent id.
        budget: the memory that may be used.
        classes: the classes that the file describes, by name.
    """

    def __init__(
        self, persistent: Callable[[Any], Any], budget: Budget, classes: dict[str, Described] | None = None
    ) -> None:
        self.persistent = persistent
        self.classes = classes or {}
        self.budget = budget
        self.keys: Keys = Keys(trust.is_allowed, budget.size)

    def find(self, name: str) -> Any:
        """Return the object to which `name` refers.

        Raises:
            UnknownName: the table does not have `name`.
        """
        found = _find(name) or self.classes.get(name)
        if found is None:
            raise UnknownName(name)
        return found

    def has(self, name: str) -> bool:
        """Return whether the table has `name`."""
        return _find(name) is not None or name in self.classes

    def call(self, function: Any, arguments: tuple[Any, ...], new: bool) -> Any:
        """Return the result of calling `function`, or of calling its `__new__` if `new` is true."""
        # Charge the memory before the call, because a short pickle could copy a large list again and again.
        self.budget.charge(_cost(function, arguments))
        if type(function) is Described:
            try:
                return function.make(arguments)
            except ValueError as error:
                raise FormatError(
                    f"a named tuple cannot be built from the values in the file ({error})"
                ) from None
        if not isinstance(function, (type, FunctionType)) and not trust.is_allowed(function):
            raise FormatError(f"a pickle calls a {type(function).__name__}, which is not a class or function")
        if trust.is_allowed(function):
            try:
                return function.__new__(function, *arguments) if new else function(*arguments)
            except Exception as error:
                raise FormatError(
                    f"{_shown(function)} cannot be built from the values in the file ({error})"
                ) from error
        builder = _CALLS.get(function)
        if builder is None:
            raise FormatError(f"a pickle calls {_shown(function)}, which is not allowed")
        try:
            if builder in _OF_KEYS:
                return builder(self.keys, *arguments)
            if builder in _OF_BUDGET:
                return builder(self.budget, *arguments)
            return builder(*arguments)
        except FormatError:
            raise
        except _ERRORS as error:
            raise FormatError(
                f"{_shown(function)} cannot be built from the values in the file ({error})"
            ) from None

    def give_state(self, value: Any, state: Any) -> None:
        """Set the state of `value`."""
        kind = type(value)
        self.budget.charge(120 * len(state) if isinstance(state, (dict, tuple, list)) else 0)
        if trust.is_allowed(kind):
            _set_state(value, state)
        elif kind is OrderedDict or kind is Tensor or kind is Parameter:
            _set_attributes(value, state)
        elif kind is Namespace:
            if not isinstance(state, dict) or any(type(k) is not str or k.startswith("__") for k in state):
                raise FormatError("the state of a Namespace must be a dictionary from names to values")
            vars(value).update(state)
        elif (numpy := sys.modules.get("numpy")) and isinstance(value, (numpy.ndarray, numpy.dtype)):
            if isinstance(state, tuple) and state and isinstance(state[-1], bytes):
                self.budget.charge(len(state[-1]))
            try:
                (_fill_array if kind is numpy.ndarray else _fill_dtype)(value, state)
            except _ERRORS as error:
                raise FormatError(f"an array cannot be built from the values in the file ({error})") from None
        else:
            raise FormatError(f"a pickle sets the state of a {kind.__name__}, which has no state")

    def is_mapping(self, value: Any) -> bool:
        """Return whether a pickle may set items of `value`, a dictionary of an allowed class."""
        return isinstance(value, dict) and trust.is_allowed(type(value))

    def is_sequence(self, value: Any) -> bool:
        """Return whether a pickle may append to `value`."""
        return type(value) is deque or (isinstance(value, list) and trust.is_allowed(type(value)))


def _shown(function: Any) -> str:
    name = getattr(function, "__qualname__", None) or repr(function)
    return name[:80]


def _set_state(value: Any, state: Any) -> None:
    """Set the state of an instance of an allowed class, as `pickle` does."""
    try:
        if hasattr(value, "__setstate__"):
            value.__setstate__(state)
            return
        slots = None
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        if state:
            vars(value).update(state)
        for name, item in (slots or {}).items():
            setattr(value, name, item)
    except Exception as error:
        raise FormatError(
            f"the state of a {type(value).__name__} cannot be set from the values in the file ({error})"
        ) from error
