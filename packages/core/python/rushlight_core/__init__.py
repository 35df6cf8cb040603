"""rushlight-core: tensors and operators with PyTorch's API, for CPUs and, with a plug-in, for GPUs.

rushlight-autograd adds gradients, and rushlight-nn adds layers. The package rushlight combines all these
packages.
"""

# ruff: noqa: E402, F401
from __future__ import annotations

from ._load import load_native as _load_native

_C = _load_native(__name__, __path__)

# Names of the native module: operators, Tensor and small types. Names that are private, belong to submodules, or have a
# wrapper in Python are left out. The names that are imported below are written in Python.
_OTHER = ("_", "linalg_", "fft_", "einsum", "meshgrid")
globals().update({_name: _value for _name, _value in vars(_C).items() if not _name.startswith(_OTHER)})

from ._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, strict
from ._info import (
    cdouble,
    cfloat,
    channels_last,
    channels_last_3d,
    contiguous_format,
    e,
    finfo,
    iinfo,
    inf,
    is_tensor,
    jagged,
    layout,
    memory_format,
    nan,
    newaxis,
    pi,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
    typename,
)
from ._nonzero import nonzero
from ._predicates import (
    is_complex,
    is_conj,
    is_floating_point,
    is_inference,
    is_neg,
    is_nonzero,
    is_same_size,
    is_signed,
    is_storage,
    numel,
)
from ._random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

_C.Tensor.layout = property(lambda self: _layout_of(self))
for _name in (
    "is_hpu",
    "is_ipu",
    "is_maia",
    "is_mkldnn",
    "is_mps",
    "is_mtia",
    "is_nested",
    "is_vulkan",
    "is_xla",
    "is_xpu",
):  # devices and layouts that do not exist here
    setattr(_C.Tensor, _name, property(lambda self: False))
_C.Tensor.is_conj, _C.Tensor.is_neg = is_conj, is_neg
# Division operators under their names in Python 2, which PyTorch still has.
_C.Tensor.__div__, _C.Tensor.__rdiv__ = _C.Tensor.__truediv__, _C.Tensor.__rtruediv__
_C.Tensor.__idiv__ = _C.Tensor.__itruediv__

del globals()["DisableTorchFunctionSubclass"]  # the class is a name of the module `overrides`

__version__: str = _C.__version__

__all__ = sorted(_name for _name in globals() if not _name.startswith("_") and _name != "annotations")


def _array_namespace(self, *, api_version=None):
    from .array_api._namespace import array_namespace

    return array_namespace(self, api_version=api_version)


def _to_device(self, device, /, *, stream=None):
    from .array_api._namespace import to_device

    return to_device(self, device, stream=stream)


def _new(self, *args, device=None):
    from ._tensor_types import new

    return new(self, *args, device=device)


def _storage_in_python(name):
    def method(*args, **kwargs):
        from . import _storages

        return getattr(_storages, name)(*args, **kwargs)

    method.__name__ = name
    return method


def _conversion_of_storage(name):
    def method(self):
        from ._storages import elements

        return getattr(elements(self), name)()

    method.__name__ = name
    method.__doc__ = "Return the values of the bytes as numbers of another dtype, in new memory."
    return method


_C.UntypedStorage.from_file = staticmethod(_storage_in_python("from_file"))
_C.UntypedStorage.from_buffer = staticmethod(_storage_in_python("from_buffer"))
for _name in (
    *("untyped", "is_shared", "share_memory_", "tolist", "fill_", "copy_", "clone", "new", "byteswap"),
    *("to", "cpu", "cuda", "pin_memory", "is_pinned", "element_size", "get_device"),
):
    setattr(_C.UntypedStorage, _name, _storage_in_python(_name))
_C.UntypedStorage.__getitem__ = _storage_in_python("getitem")
_C.UntypedStorage.__setitem__ = _storage_in_python("setitem")
_C.UntypedStorage.__iter__ = _storage_in_python("iterate")
_C.UntypedStorage.__copy__ = _storage_in_python("clone")
for _name in (
    *("bool", "byte", "char", "short", "int", "long", "half", "bfloat16", "float", "double"),
    *("complex_float", "complex_double"),
):
    setattr(_C.UntypedStorage, _name, _conversion_of_storage(_name))
_C.UntypedStorage.is_cuda = property(lambda self: self.device.type == "cuda")
_C.UntypedStorage.is_sparse = _C.UntypedStorage.is_sparse_csr = False


_SPARSE_LAYOUTS = {str(each): each for each in (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)}


def _layout_of(t):
    parts = _C._sparse_parts(t)
    return strided if parts is None else _SPARSE_LAYOUTS[parts[0]]


_set_to_tensor = _C.Tensor.set_


def _set(self, *args, **kwargs):
    source = args[0] if args else kwargs.get("source")
    if source is None or isinstance(source, _C.Tensor):
        return _set_to_tensor(self, *args, **kwargs)
    from ._storages import set_to_storage

    return set_to_storage(_set_to_tensor, self, *args, **kwargs)


_set.__name__, _set.__doc__ = "set_", _set_to_tensor.__doc__
_C.Tensor.set_ = _set
_C.Tensor.new = _new
_C.Tensor.const_data_ptr = _C.Tensor.data_ptr  # both pointers may be used for reading and writing
_C.Tensor.__array_namespace__ = _array_namespace
_C.Tensor.to_device = _to_device

# Names that are loaded when they are first used, because many programs do not need them.
_LAZY = {
    "asarray": "_creation",
    "broadcast_shapes": "_shapes",
    "meshgrid": "_shapes",
    "range": "_range",
    **dict.fromkeys(
        (
            "are_deterministic_algorithms_enabled",
            "get_default_device",
            "get_deterministic_debug_mode",
            "get_float32_matmul_precision",
            "get_num_interop_threads",
            "init_num_threads",
            "is_deterministic_algorithms_warn_only_enabled",
            "is_warn_always_enabled",
            "set_default_device",
            "set_default_tensor_type",
            "set_deterministic_debug_mode",
            "set_float32_matmul_precision",
            "set_flush_denormal",
            "set_num_interop_threads",
            "set_warn_always",
            "use_deterministic_algorithms",
        ),
        "_settings",
    ),
    **dict.fromkeys(
        (
            "astype",
            "bitwise_invert",
            "broadcast_arrays",
            "cumulative_prod",
            "cumulative_sum",
            "expand_dims",
            "isdtype",
            "matrix_transpose",
            "permute_dims",
            "repeat",
            "take_along_axis",
            "unique_all",
            "unique_counts",
            "unique_inverse",
            "unique_values",
            "unstack",
            "vecdot",
        ),
        "array_api",
    ),
    **dict.fromkeys(
        (
            "BFloat16Tensor",
            "BoolTensor",
            "ByteTensor",
            "CharTensor",
            "DoubleTensor",
            "FloatTensor",
            "HalfTensor",
            "IntTensor",
            "LongTensor",
            "ShortTensor",
        ),
        "_tensor_types",
    ),
    "TypedStorage": "_typed_storage",
    **dict.fromkeys(
        (
            "GradScaler",
            "autocast",
            "clear_autocast_cache",
            "get_autocast_cpu_dtype",
            "get_autocast_dtype",
            "get_autocast_gpu_dtype",
            "is_autocast_cache_enabled",
            "is_autocast_cpu_enabled",
            "is_autocast_enabled",
            "set_autocast_cache_enabled",
            "set_autocast_dtype",
        ),
        "amp",
    ),
    "amp": "",
    "array_api": "",
    "compile": "_compile",
    "cond": "_control_flow",
    "devices": "",
    "Event": "_streams",
    "Stream": "_streams",
    "einsum": "_contraction",
    "tensordot": "_contraction",
    "get_printoptions": "_printing",
    "gradient": "_gradient",
    "histogram": "_histogram",
    "histogramdd": "_histogramdd",
    "printoptions": "_printing",
    "set_printoptions": "_printing",
    "fft": "",
    "from_file": "_files",
    **dict.fromkeys(
        ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"), "_windows"
    ),
    "linalg": "",
    "lu": "_lu",
    "overrides": "",
    "pca_lowrank": "_lowrank",
    "special": "",
    **dict.fromkeys(
        (
            "SymBool",
            "SymFloat",
            "SymInt",
            "sym_float",
            "sym_int",
            "sym_ite",
            "sym_max",
            "sym_min",
            "sym_not",
            "sym_sqrt",
            "sym_sum",
        ),
        "_sym",
    ),
    **dict.fromkeys(("segment_reduce",), "_segments"),
    **dict.fromkeys(
        (
            "sparse_bsc_tensor",
            "sparse_bsr_tensor",
            "sparse_compressed_tensor",
            "sparse_coo_tensor",
            "sparse_csc_tensor",
            "sparse_csr_tensor",
        ),
        "_sparse",
    ),
    **dict.fromkeys(
        (
            "dsmm",
            "hsmm",
            "hspmm",
            "is_same_size",
            "resize_as_sparse_",
            "saddmm",
            "smm",
            "spmm",
            "sspaddmm",
        ),
        "sparse",
    ),
    "sparse": "",
    "svd_lowrank": "_lowrank",
    "unique": "_unique",
    "unique_consecutive": "_unique",
}
__all__ += list(_LAZY)


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from importlib import import_module

        module = import_module(f".{_LAZY[name] or name}", __name__)
        value = globals()[name] = getattr(module, name) if _LAZY[name] else module
        return value
    if name == "__array_namespace_info__":
        from .array_api import __array_namespace_info__

        return __array_namespace_info__
    if name.startswith(("float4_", "qint", "quint", "int", "uint", "complex32", "chalf")):
        from ._other_dtypes import OTHERS

        if name in OTHERS:
            return OTHERS[name]
    if name in ("_assert", "_assert_async", "_check"):
        from . import _sym

        return getattr(_sym, name)
    if name in ("_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo"):
        from . import _sparse

        return getattr(_sparse, name)
    if name.startswith("_foreach_"):
        from ._foreach import function

        value = globals()[name] = function(name.removeprefix("_foreach_"))
        return value
    # Operators whose names begin with one underscore are for other packages, not for `import *`. Operators of `linalg` and
    # `fft` have public names in these modules.
    if name.startswith(("_", "linalg_", "fft_")) and not name.startswith("__") and hasattr(_C, name):
        return getattr(_C, name)
    from ._misspelt import missing

    raise missing(__name__, name, __dir__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
