"""`rushlight.array_api`: the functions of the Python array API standard, version 2024.12, for rushlight's tensors.

`Tensor.__array_namespace__()` returns this namespace, so that code written for the standard runs unchanged:

    def softmax(x):
        xp = x.__array_namespace__()
        e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return e / xp.sum(e, axis=-1, keepdims=True)

`rushlight` itself has PyTorch's functions, and some of their names, defaults and results differ from the standard. The
arrays are rushlight's tensors, so gradients of the results can be computed. docs/differences.md lists the remaining
differences from the standard.
"""

from __future__ import annotations

from .._C import bool as bool
from .._C import complex64 as complex64
from .._C import complex128 as complex128
from .._C import float32 as float32
from .._C import float64 as float64
from .._C import int8 as int8
from .._C import int16 as int16
from .._C import int32 as int32
from .._C import int64 as int64
from .._C import uint8 as uint8
from .._C import uint16 as uint16
from .._C import uint32 as uint32
from .._C import uint64 as uint64
from .._info import e as e
from .._info import inf as inf
from .._info import nan as nan
from .._info import newaxis as newaxis
from .._info import pi as pi
from . import fft as fft
from . import linalg as linalg
from ._creation import arange as arange
from ._creation import asarray as asarray
from ._creation import empty as empty
from ._creation import empty_like as empty_like
from ._creation import eye as eye
from ._creation import from_dlpack as from_dlpack
from ._creation import full as full
from ._creation import full_like as full_like
from ._creation import linspace as linspace
from ._creation import meshgrid as meshgrid
from ._creation import ones as ones
from ._creation import ones_like as ones_like
from ._creation import tril as tril
from ._creation import triu as triu
from ._creation import zeros as zeros
from ._creation import zeros_like as zeros_like
from ._dtypes import astype as astype
from ._dtypes import can_cast as can_cast
from ._dtypes import finfo as finfo
from ._dtypes import iinfo as iinfo
from ._dtypes import isdtype as isdtype
from ._dtypes import result_type as result_type
from ._elementwise import abs as abs
from ._elementwise import acos as acos
from ._elementwise import acosh as acosh
from ._elementwise import add as add
from ._elementwise import asin as asin
from ._elementwise import asinh as asinh
from ._elementwise import atan as atan
from ._elementwise import atan2 as atan2
from ._elementwise import atanh as atanh
from ._elementwise import bitwise_and as bitwise_and
from ._elementwise import bitwise_invert as bitwise_invert
from ._elementwise import bitwise_left_shift as bitwise_left_shift
from ._elementwise import bitwise_or as bitwise_or
from ._elementwise import bitwise_right_shift as bitwise_right_shift
from ._elementwise import bitwise_xor as bitwise_xor
from ._elementwise import ceil as ceil
from ._elementwise import clip as clip
from ._elementwise import conj as conj
from ._elementwise import copysign as copysign
from ._elementwise import cos as cos
from ._elementwise import cosh as cosh
from ._elementwise import divide as divide
from ._elementwise import equal as equal
from ._elementwise import exp as exp
from ._elementwise import expm1 as expm1
from ._elementwise import floor as floor
from ._elementwise import floor_divide as floor_divide
from ._elementwise import greater as greater
from ._elementwise import greater_equal as greater_equal
from ._elementwise import hypot as hypot
from ._elementwise import imag as imag
from ._elementwise import isfinite as isfinite
from ._elementwise import isinf as isinf
from ._elementwise import isnan as isnan
from ._elementwise import less as less
from ._elementwise import less_equal as less_equal
from ._elementwise import log as log
from ._elementwise import log1p as log1p
from ._elementwise import log2 as log2
from ._elementwise import log10 as log10
from ._elementwise import logaddexp as logaddexp
from ._elementwise import logical_and as logical_and
from ._elementwise import logical_not as logical_not
from ._elementwise import logical_or as logical_or
from ._elementwise import logical_xor as logical_xor
from ._elementwise import maximum as maximum
from ._elementwise import minimum as minimum
from ._elementwise import multiply as multiply
from ._elementwise import negative as negative
from ._elementwise import nextafter as nextafter
from ._elementwise import not_equal as not_equal
from ._elementwise import positive as positive
from ._elementwise import pow as pow
from ._elementwise import real as real
from ._elementwise import reciprocal as reciprocal
from ._elementwise import remainder as remainder
from ._elementwise import round as round
from ._elementwise import sign as sign
from ._elementwise import signbit as signbit
from ._elementwise import sin as sin
from ._elementwise import sinh as sinh
from ._elementwise import sqrt as sqrt
from ._elementwise import square as square
from ._elementwise import subtract as subtract
from ._elementwise import tan as tan
from ._elementwise import tanh as tanh
from ._elementwise import trunc as trunc
from ._manipulation import broadcast_arrays as broadcast_arrays
from ._manipulation import broadcast_shapes as broadcast_shapes
from ._manipulation import broadcast_to as broadcast_to
from ._manipulation import concat as concat
from ._manipulation import expand_dims as expand_dims
from ._manipulation import flip as flip
from ._manipulation import moveaxis as moveaxis
from ._manipulation import permute_dims as permute_dims
from ._manipulation import repeat as repeat
from ._manipulation import reshape as reshape
from ._manipulation import roll as roll
from ._manipulation import squeeze as squeeze
from ._manipulation import stack as stack
from ._manipulation import take as take
from ._manipulation import take_along_axis as take_along_axis
from ._manipulation import tile as tile
from ._manipulation import unstack as unstack
from ._namespace import __array_namespace_info__ as __array_namespace_info__
from ._products import matmul as matmul
from ._products import matrix_transpose as matrix_transpose
from ._products import tensordot as tensordot
from ._products import vecdot as vecdot
from ._reductions import all as all
from ._reductions import any as any
from ._reductions import cumulative_prod as cumulative_prod
from ._reductions import cumulative_sum as cumulative_sum
from ._reductions import diff as diff
from ._reductions import max as max
from ._reductions import mean as mean
from ._reductions import min as min
from ._reductions import prod as prod
from ._reductions import std as std
from ._reductions import sum as sum
from ._reductions import var as var
from ._searching import argmax as argmax
from ._searching import argmin as argmin
from ._searching import argsort as argsort
from ._searching import count_nonzero as count_nonzero
from ._searching import isin as isin
from ._searching import nonzero as nonzero
from ._searching import searchsorted as searchsorted
from ._searching import sort as sort
from ._searching import unique_all as unique_all
from ._searching import unique_counts as unique_counts
from ._searching import unique_inverse as unique_inverse
from ._searching import unique_values as unique_values
from ._searching import where as where

__array_api_version__ = "2024.12"

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "complex128",
    "complex64",
    "concat",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "divide",
    "e",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "fft",
    "finfo",
    "flip",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "searchsorted",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]
