"""Dtypes, layouts and memory formats of tensors, and storage classes and quantization schemes of PyTorch, by name."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core._other_dtypes import OTHERS

from .._typing import Any

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


#: All layouts, and all orders of dimensions in memory, by name.
LAYOUTS: dict[str, Any] = {
    str(layout): layout
    for layout in (
        *(core.strided, core.sparse_coo, core.jagged),
        *(core.sparse_csr, core.sparse_csc, core.sparse_bsr, core.sparse_bsc),
    )
}
MEMORY_FORMATS: dict[str, Any] = {
    str(order): order
    for order in (
        *(core.contiguous_format, core.preserve_format),
        *(core.channels_last, core.channels_last_3d),
    )
}


class StorageType:
    """A placeholder for a storage class of PyTorch, such as FloatStorage.

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
