"""The table of the names that a pickle of data may use, with the object to which each name refers.

The table :data:`NAMES` maps names such as "torch.Tensor" to a class, a constant, or a function that makes a value from plain
arguments (:mod:`tensor_builders`, :mod:`object_builders`, :mod:`numpy_builders`). A class may also be used as a value, for
example as the factory of a defaultdict. Only the classes and functions in :data:`_CALLS` may be called.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import FunctionType

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core._other_dtypes import OTHERS

from .._typing import Any
from ..parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from . import numpy_builders, object_builders, tensor_builders, trust
from .described import Described
from .dtypes import (
    DTYPES,
    QUANTIZATION_SCHEMES,
    QUANTIZED_STORAGES,
    STORAGES,
    QuantizationScheme,
    StorageType,
)
from .errors import Budget, FormatError
from .keys import Keys
from .machine import cost_of_items
from .sparse import COMPRESSED, rebuild_sparse


class UnknownName(FormatError):  # noqa: N818
    """Raised for a name that is not in the table."""


NAMES: dict[str, Any] = {
    "torch._utils._rebuild_tensor": tensor_builders.rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": tensor_builders.rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": tensor_builders.rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": tensor_builders.rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": tensor_builders.rebuild_parameter,
    "torch._utils._rebuild_meta_tensor_no_storage": tensor_builders.rebuild_meta,
    "torch._utils._rebuild_device_tensor_from_numpy": tensor_builders.rebuild_on_device,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": tensor_builders.rebuild_on_device,
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse,
    "torch._utils._rebuild_sparse_csr_tensor": rebuild_sparse,
    "torch._utils._rebuild_qtensor": tensor_builders.refuse_quantized,
    "torch._tensor._rebuild_from_type_v2": tensor_builders.rebuild_typed,
    "torch.serialization._get_layout": tensor_builders.layout,
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.nn.parameter.Buffer": Buffer,
    "torch.nn.parameter.UninitializedParameter": UninitializedParameter,
    "torch.nn.parameter.UninitializedBuffer": UninitializedBuffer,
    "torch.device": core.device,
    "torch.Size": core.Size,
    "torch.nn.utils.rnn.PackedSequence": tensor_builders.packed_sequence,
    "torch.storage.UntypedStorage": StorageType("UntypedStorage", None),
    "torch.strided": core.strided,
    "torch.sparse_coo": core.sparse_coo,
    **{str(each): each for each in COMPRESSED},
    "collections.OrderedDict": OrderedDict,
    "collections.defaultdict": defaultdict,
    "collections.Counter": Counter,
    "collections.deque": deque,
    "argparse.Namespace": Namespace,
    "_codecs.encode": object_builders.encode,
    "datetime.datetime": object_builders.date_time,
    "datetime.date": object_builders.date,
    "datetime.time": object_builders.time,
    "datetime.timedelta": object_builders.duration,
    "datetime.timezone": object_builders.time_zone,
    "numpy.ndarray": numpy_builders.ArrayType,
    "numpy.dtype": numpy_builders.DtypeType,
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
        NAMES[f"{_module}.{_kind.__name__}"] = _kind
NAMES |= {"__builtin__.unicode": str, "__builtin__.long": int, "__builtin__.xrange": range}
for _module in ("pathlib", "pathlib._local"):
    NAMES |= {f"{_module}.{_name}": object_builders.path for _name in ("Path", "PosixPath")}
    NAMES |= {
        f"{_module}.{_name}": object_builders.windows_path for _name in ("WindowsPath", "PureWindowsPath")
    }
    NAMES |= {f"{_module}.{_name}": object_builders.pure_path for _name in ("PurePath", "PurePosixPath")}
for _module in ("numpy.core", "numpy._core"):
    NAMES[f"{_module}.multiarray._reconstruct"] = numpy_builders.numpy_array
    NAMES[f"{_module}.multiarray.scalar"] = numpy_builders.numpy_scalar
    NAMES[f"{_module}.numeric._frombuffer"] = numpy_builders.numpy_frombuffer
for _name, _dtype in STORAGES.items():
    _type = StorageType(_name, getattr(core, _dtype))
    NAMES |= {f"torch.{_name}": _type, f"torch.cuda.{_name}": _type, f"torch.storage.{_name}": _type}

NAMES |= {
    f"torch.{_name}": StorageType(_name, OTHERS[_dtype]) for _name, _dtype in QUANTIZED_STORAGES.items()
}
NAMES |= {f"torch.{_name}": QuantizationScheme(_name) for _name in QUANTIZATION_SCHEMES}
NAMES |= {f"torch.{_name}": _dtype for _name, _dtype in DTYPES.items()}

# A dictionary from each object that a pickle may call to the function that builds the value. A function in the table
# builds the value itself.
_CALLS: dict[Any, Callable[..., Any]] = {
    OrderedDict: object_builders.ordered_dict,
    defaultdict: object_builders.default_dict,
    Counter: object_builders.counter,
    deque: object_builders.plain_deque,
    Namespace: object_builders.namespace,
    core.device: tensor_builders.device,
    core.Size: tensor_builders.size,
    numpy_builders.ArrayType: lambda *a: numpy_builders.numpy_array(numpy_builders.ArrayType, *a),
    numpy_builders.DtypeType: numpy_builders.numpy_dtype,
    UninitializedParameter: tensor_builders.uninitialized(UninitializedParameter),
    UninitializedBuffer: tensor_builders.uninitialized(UninitializedBuffer),
    set: object_builders.plain_set,
    frozenset: object_builders.plain_frozenset,
    list: object_builders.plain_list,
    bytes: object_builders.plain_bytes,
    bytearray: object_builders.plain_bytearray,
    complex: object_builders.plain_complex,
    slice: object_builders.plain_slice,
    range: object_builders.plain_range,
}
_CALLS |= {_value: _value for _value in NAMES.values() if isinstance(_value, FunctionType)}

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
    return NAMES.get(name) if found is None else found


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
    """Return an upper bound of the memory that the result of `function(*arguments)` takes.

    The bound is valid if `function` copies each argument at most once.
    """
    texts = sum(2 * len(value) for value in arguments if isinstance(value, (str, bytes, bytearray)))
    items = sum(len(v) for v in arguments if isinstance(v, (list, tuple, dict, set, frozenset)))
    if isinstance(function, type) and function in (list, deque):
        return _EMPTY[function] + 9 * items
    if isinstance(function, type) and function in _EMPTY:
        pairs = function in (OrderedDict, Counter) and not (arguments and isinstance(arguments[0], dict))
        return _EMPTY[function] + cost_of_items(function, 0, items) + (90 * items if pairs else 0)
    return 300 + texts + 120 * items


class Names:
    """Resolves the names in a pickle and performs the pickle's calls, for a :class:`~.machine.Machine`.

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
            UnknownName: the table does not contain `name`.
        """
        found = _find(name) or self.classes.get(name)
        if found is None:
            raise UnknownName(name)
        return found

    def has(self, name: str) -> bool:
        """Return whether the table contains `name`."""
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
            if builder in object_builders.OF_KEYS:
                return builder(self.keys, *arguments)
            if builder in tensor_builders.OF_BUDGET:
                return builder(self.budget, *arguments)
            return builder(*arguments)
        except FormatError:
            raise
        except _ERRORS as error:
            raise FormatError(
                f"{_shown(function)} cannot be built from the values in the file ({error})"
            ) from None

    def give_state(self, value: Any, state: Any) -> None:
        """Set the state of the object `value`, as pickle's instruction BUILD does."""
        kind = type(value)
        self.budget.charge(120 * len(state) if isinstance(state, (dict, tuple, list)) else 0)
        if trust.is_allowed(kind):
            _set_state(value, state)
        elif kind is OrderedDict or kind is Tensor or kind is Parameter:
            tensor_builders.set_attributes(value, state)
        elif kind is Namespace:
            if not isinstance(state, dict) or any(type(k) is not str or k.startswith("__") for k in state):
                raise FormatError("the state of a Namespace must be a dictionary from names to values")
            vars(value).update(state)
        elif (numpy := sys.modules.get("numpy")) and isinstance(value, (numpy.ndarray, numpy.dtype)):
            if isinstance(state, tuple) and state and isinstance(state[-1], bytes):
                self.budget.charge(len(state[-1]))
            fill = numpy_builders.fill_array if kind is numpy.ndarray else numpy_builders.fill_dtype
            try:
                fill(value, state)
            except _ERRORS as error:
                raise FormatError(f"an array cannot be built from the values in the file ({error})") from None
        else:
            raise FormatError(f"a pickle sets the state of a {kind.__name__}, which has no state")

    def is_mapping(self, value: Any) -> bool:
        """Return whether `value` is a dictionary of an allowed class, so that a pickle may set its items."""
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
