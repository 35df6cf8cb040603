"""Write data as a pickle that PyTorch's `torch.load(weights_only=True)` reads.

The pickle refers to classes and functions by PyTorch's names. The bytes of tensors are stored outside the
pickle, in storages that persistent ids refer to. The pickle has protocol 2.
"""

from __future__ import annotations

import datetime
import enum
import pathlib
import struct
import sys
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core._other_dtypes import OtherDtype

from ..parameter import Buffer, Parameter, is_lazy
from . import trust
from .dtypes import STORAGES
from .structure import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BATCH = 1000  # number of items that one instruction adds


class Stored:
    """The part of a storage that is written to the file, because tensors use it.

    The parts at both ends that no tensor uses are omitted, so that a row of a large matrix is saved without
    the rest of the matrix.
    """

    def __init__(self, storage: Any, key: str, dtype: Any) -> None:
        self.storage = storage
        self.key = key
        self.dtype = dtype  # None if tensors of several dtypes share the memory
        self.begin: Any = storage.nbytes()  # in bytes
        self.end = 0

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element."""
        return 1 if self.dtype is None else self.dtype.itemsize

    def memory(self) -> memoryview:
        """Return the bytes of this part of the storage, as they are written to the file."""
        count = max(self.end - self.begin, 0)
        if not count:
            return memoryview(b"")
        storage = self.storage
        if storage.device.type != "cpu":
            whole = core._C._tensor_over(storage, core.uint8, [count], [1], self.begin)
            return memoryview(whole.cpu().untyped_storage())[:count]
        return memoryview(storage)[self.begin : self.end]


class Storages:
    """The storages of an object's tensors, in the order of their first occurrence."""

    def __init__(self) -> None:
        self.stored: dict[int, Stored] = {}

    def add(self, tensor: Tensor) -> None:
        """Record the part of the storage that `tensor` uses, so that this part is saved."""
        storage = tensor.untyped_storage()
        found = self.stored.get(id(storage))
        if found is None:
            named = any(tensor.dtype == getattr(core, name) for name in STORAGES.values())
            found = Stored(storage, str(len(self.stored)), tensor.dtype if named else None)
            self.stored[id(storage)] = found
        elif found.dtype != tensor.dtype:
            if core.bool in (found.dtype, tensor.dtype):
                raise ValueError(
                    f"save: tensors of {found.dtype} and {tensor.dtype} that share memory cannot be saved\n"
                    "hint: save a clone() of one of them"
                )
            found.dtype = None
            found.begin -= found.begin % 16
        if tensor.numel():
            extent = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
            begin = tensor.storage_offset() * tensor.itemsize
            end = begin + (extent + 1) * tensor.itemsize
            if found.dtype is None:  # so that offsets are multiples of the element size of any dtype
                begin -= begin % 16
            found.begin = min(found.begin, begin)
            found.end = max(found.end, end)

    def add_whole(self, storage: Any, dtype: Any) -> None:
        """Record all bytes of `storage`, because the saved object contains the storage itself."""
        found = self.stored.get(id(storage))
        if found is None:
            found = self.stored[id(storage)] = Stored(storage, str(len(self.stored)), dtype)
        elif found.dtype != dtype:
            if found.dtype == core.bool or dtype == core.bool:
                raise ValueError(
                    "save: a storage cannot be saved as bools and as another dtype\nhint: save it with one dtype"
                )
            found.dtype = None
        found.begin, found.end = 0, storage.nbytes()

    def of(self, tensor: Tensor) -> Stored:
        """Return the `Stored` object for the storage of `tensor`."""
        return self.stored[id(tensor.untyped_storage())]


def dump(obj: Any, legacy: bool = False) -> tuple[bytes, list[Stored], dict[str, list[str] | None]]:
    """Return the pickle of `obj`, the storages to write with it, and a dictionary that describes classes.

    The dictionary maps the name of each named tuple class, except PackedSequence, to its fields, and the name of each
    enumeration to None.

    Raises:
        TypeError: `obj` contains a value of a type that cannot be saved; the message gives the path of the value.
        ValueError: the object is nested too deeply.
    """
    storages = Storages()
    try:
        # The first pass determines the parts of storages that tensors use, and the second pass writes.
        Pickler(storages, legacy, noting=True).dump(obj)
        pickler = Pickler(storages, legacy)
        pickle = pickler.dump(obj)
    except RecursionError:
        raise ValueError("save: the object is nested too deeply, or a tuple contains itself") from None
    return pickle, list(storages.stored.values()), pickler.classes


class Pickler:
    """An object that writes one value as a pickle.

    Args:
        storages: the storages of the tensors.
        legacy: whether to write persistent ids of six items, as the legacy layout requires.
        noting: whether to only add the storages of the value to `storages`, and discard the pickle.
    """

    out: bytearray

    def __init__(self, storages: Storages, legacy: bool = False, noting: bool = False) -> None:
        self.storages = storages
        self.legacy = legacy
        self.noting = noting
        self.out = bytearray()
        self.memo: dict[Any, int] = {}
        self.kept: list[Any] = []  # keeps objects, so that no new object gets the same id()
        self.path: list[Any] = []
        self.classes: dict[str, list[str] | None] = {}

    def dump(self, obj: Any) -> bytes:
        """Return the pickle of `obj`."""
        self.out += b"\x80\x02"
        self.save(obj)
        self.out += b"."
        return bytes(self.out)

    # Values -------------------------------------------------------------------------------------------------

    def save(self, value: Any) -> None:
        """Write the instructions that push `value` on the stack."""
        kind = type(value)
        if value is None:
            self.out += b"N"
        elif kind is bool:
            self.out += b"\x88" if value else b"\x89"
        elif kind is int:
            self.integer(value)
        elif kind is float:
            self.out += b"G" + struct.pack(">d", value)
        elif kind is str:
            self.string(value)
        elif not self.recall(id(value)):
            writer = _WRITERS.get(kind)
            if writer is not None:
                writer(self, value)
            else:
                self.other(value)

    def integer(self, value: int) -> None:
        if 0 <= value < 256:
            self.out += b"K" + struct.pack("<B", value)
        elif 0 <= value < 65536:
            self.out += b"M" + struct.pack("<H", value)
        elif -(2**31) <= value < 2**31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            if len(data) < 256:
                self.out += b"\x8a" + struct.pack("<B", len(data)) + data
            else:
                self.out += b"\x8b" + struct.pack("<i", len(data)) + data

    def string(self, value: str) -> None:
        if not self.recall(value):
            data = value.encode("utf-8", "surrogatepass")
            self.out += b"X" + struct.pack("<I", len(data)) + data
            self.remember(value)

    def name(self, module: str, name: str) -> None:
        key = (module, name)
        if not self.recall(key):
            self.out += b"c" + f"{module}\n{name}\n".encode()
            self.remember(key)

    def plain_tuple(self, values: Any) -> None:
        """Write a tuple, without storing it in the memo, because no later instruction refers to it."""
        if not values:
            self.out += b")"
            return
        if len(values) > 3:
            self.out += b"("
        for value in values:
            self.save(value)
        self.out += {1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(values), b"t")

    def recall(self, key: Any) -> bool:
        """Write a reference to the object that the memo has under `key`, and return whether there is such an object."""
        number = self.memo.get(key)
        if number is None:
            return False
        self.out += b"h" + struct.pack("<B", number) if number < 256 else b"j" + struct.pack("<I", number)
        return True

    def remember(self, key: Any) -> None:
        """Write the instruction that stores the object on top of the stack in the memo, under `key`."""
        number = self.memo[key] = len(self.memo)
        self.out += b"q" + struct.pack("<B", number) if number < 256 else b"r" + struct.pack("<I", number)

    def remember_object(self, value: Any) -> None:
        self.kept.append(value)
        self.remember(id(value))

    def reduce(self, module: str, name: str, arguments: Any, value: Any, new: bool = False) -> None:
        """Write the call of the class or function `module.name` that constructs `value`."""
        self.name(module, name)
        self.plain_tuple(arguments)
        self.out += b"\x81" if new else b"R"
        self.remember_object(value)

    # Containers ---------------------------------------------------------------------------------------------

    def tuple(self, value: Any) -> None:
        self.plain_tuple(value)
        if value:
            self.remember_object(value)

    def list(self, value: Any) -> None:
        self.out += b"]"
        self.remember_object(value)
        self.items(value)

    def items(self, value: Any) -> None:
        for begin in range(0, len(value), _BATCH):
            self.out += b"("
            for i, item in enumerate(value[begin : begin + _BATCH], begin):
                self.path.append(i)
                self.save(item)
                self.path.pop()
            self.out += b"e"

    def dict(self, value: Any) -> None:
        self.out += b"}"
        self.remember_object(value)
        self.pairs(value)

    def pairs(self, value: Any) -> None:
        pairs = list(value.items())
        for begin in range(0, len(pairs), _BATCH):
            self.out += b"("
            for key, item in pairs[begin : begin + _BATCH]:
                self.path.append(key)
                self.save(key)
                self.save(item)
                self.path.pop()
            self.out += b"u"

    def ordered_dict(self, value: Any) -> None:
        self.reduce("collections", "OrderedDict", (), value)
        self.pairs(value)
        if vars(value):
            self.save(dict(vars(value)))
            self.out += b"b"

    def default_dict(self, value: Any) -> None:
        factory = value.default_factory
        if factory not in (None, dict, list, set, tuple, int, float, bool, str, OrderedDict):
            raise self.refuse(value)
        self.name("collections", "defaultdict")
        if factory is None:
            self.out += b")"
        else:
            self.name(factory.__module__, factory.__name__)
            self.out += b"\x85"
        self.out += b"R"
        self.remember_object(value)
        self.pairs(value)

    def namespace(self, value: Any) -> None:
        self.reduce("argparse", "Namespace", (), value, new=True)
        self.save(dict(vars(value)))
        self.out += b"b"

    # Tensors ------------------------------------------------------------------------------------------------

    def tensor(self, value: Tensor) -> None:
        kind = type(value)
        if is_lazy(value):
            raise self.refuse(value)
        state = dict(value._attributes() or {})
        with core._C.DisableTorchFunctionSubclass():
            plain = value.detach()
        if kind is Parameter:
            self.name("torch._utils", "_rebuild_parameter_with_state" if state else "_rebuild_parameter")
            self.out += b"("
            self.plain_tensor(plain, False)
            self.save(value.requires_grad)
            self.reduce_hooks()
            if state:
                self.save(state)
            self.out += b"tR"
        elif kind is Tensor and not state:
            self.plain_tensor(plain, value.requires_grad)
        else:
            if kind is Buffer:
                state = {**state, "persistent": value.persistent, "_is_buffer": True}  # type: ignore[attr-defined]
            elif kind is not Tensor and not trust.is_allowed(kind):
                raise TypeError(
                    f"save: cannot save {self.path_text}: its class {kind.__qualname__} is a tensor subclass that is not "
                    "allowed\nhint: save a plain tensor, tensor.as_subclass(torch.Tensor), or call "
                    f"add_safe_globals([{kind.__name__}])"
                )
            self.name("torch._tensor", "_rebuild_from_type_v2")
            self.out += b"("
            self.function_of(plain)
            if kind in (Tensor, Buffer):
                self.name("torch", "Tensor")
            else:
                self.name(*trust.name_of(kind))
            self.arguments_of(plain, value.requires_grad)
            self.save(state)
            self.out += b"tR"
        self.remember_object(value)

    def plain_tensor(self, plain: Tensor, requires_grad: bool) -> None:
        """Write the call that reconstructs `plain`, the tensor without its subclass and attributes."""
        self.function_of(plain)
        self.arguments_of(plain, requires_grad)
        self.out += b"R"

    def function_of(self, plain: Tensor) -> None:
        """Write the name of the function that reconstructs the tensor `plain`."""
        if core._C._sparse_parts(plain) is not None:
            self.name("torch._utils", "_rebuild_sparse_tensor")
            return
        if plain.device.type == "meta":
            self.name("torch._utils", "_rebuild_meta_tensor_no_storage")
            return
        if self.noting:
            self.storages.add(plain)
        typed = self.storages.of(plain).dtype is not None
        self.name("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3")

    def arguments_of(self, plain: Tensor, requires_grad: bool) -> None:
        """Write the arguments of the call that reconstructs the tensor `plain`."""
        if (parts := core._C._sparse_parts(plain)) is not None:
            self.sparse(plain, parts)
            return
        if plain.device.type == "meta":
            self.plain_tuple((plain.dtype, tuple(plain.shape), tuple(plain.stride()), requires_grad))
            return
        stored = self.storages.of(plain)
        offset = plain.storage_offset() - stored.begin // plain.itemsize if plain.numel() else 0
        self.out += b"("
        self.storage(stored)
        self.save(max(offset, 0))
        self.plain_tuple(tuple(plain.shape))
        self.plain_tuple(tuple(plain.stride()))
        self.save(requires_grad)
        self.reduce_hooks()
        if stored.dtype is None:
            self.save(plain.dtype)
        self.out += b"t"

    def sparse(self, plain: Tensor, parts: Any) -> None:
        """Write the layout of a sparse tensor and the tuple of its parts; the format does not store `requires_grad`."""
        layout, indices, columns, found, coalesced = parts
        self.name("torch.serialization", "_get_layout")
        self.plain_tuple((layout,))
        self.out += b"R("
        for part in (indices, found) if columns is None else (indices, columns, found):
            self.plain_tensor(part, False)
        self.name("torch", "Size")
        self.plain_tuple((tuple(plain.shape),))
        self.out += b"R"
        if columns is None:
            self.save(coalesced)
        self.out += b"t\x86"

    def storage(self, stored: Stored) -> None:
        """Write the persistent id of a storage."""
        self.out += b"("
        self.save("storage")
        if stored.dtype is None:
            self.name("torch.storage", "UntypedStorage")
        else:
            self.name("torch", next(n for n, d in STORAGES.items() if getattr(core, d) == stored.dtype))
        self.save(stored.key)
        self.save(str(stored.storage.device))
        self.save(max(stored.end - stored.begin, 0) // stored.itemsize)
        if self.legacy:
            self.save(None)
        self.out += b"tQ"

    def reduce_hooks(self) -> None:
        """Write an empty dictionary in place of the tensor's hooks, which are not saved."""
        self.name("collections", "OrderedDict")
        self.out += b")R"

    def whole_storage(self, value: Any) -> None:
        """Write a storage that is itself a value in the saved object, not only the memory of a tensor."""
        typed = type(value) is core.TypedStorage
        storage = value.untyped() if typed else value
        if self.noting:
            self.storages.add_whole(storage, value.dtype if typed else None)
        stored = self.storages.stored[id(storage)]
        if (stored.dtype is not None) != typed:
            raise ValueError(
                f"save: {self.path_text} is a storage whose memory is also saved by a tensor or storage of another dtype\n"
                "hint: save it with one dtype"
            )
        self.storage(stored)
        self.remember_object(value)

    # Other values ---------------------------------------------------------------------------------------------

    @property
    def path_text(self) -> str:
        """The path of the value that is being written."""
        return ".".join(map(str, self.path)) or "the object"

    def refuse(self, value: Any) -> TypeError:
        return refusal(value, self.path_text)

    def other(self, value: Any) -> None:
        """Write a NumPy value or an instance of an allowed class; raise TypeError for any other value."""
        kind = type(value)
        numpy = sys.modules.get("numpy")
        if isinstance(value, Tensor):
            self.tensor(value)
        elif trust.is_allowed(kind):
            self.allowed(value)
        elif (
            numpy is not None
            and isinstance(value, (numpy.ndarray, numpy.generic))
            and value.dtype.kind in "biufc"
        ):
            self.array(numpy, value)
        elif kind is OtherDtype:
            self.name("torch", str(value).rpartition(".")[2])
        elif isinstance(value, enum.Enum):
            self.classes[f"{kind.__module__}.{kind.__qualname__}"] = None
            self.reduce(kind.__module__, kind.__qualname__, (value.value,), value)
        elif isinstance(value, tuple) and hasattr(kind, "_fields"):
            # A PackedSequence is written under PyTorch's name. Any other class is written under its own name, and is
            # described in another entry.
            is_packed = kind.__name__ == "PackedSequence"
            module = "torch.nn.utils.rnn" if is_packed else kind.__module__
            if not is_packed:
                self.classes[f"{module}.{kind.__qualname__}"] = list(kind._fields)
            self.reduce(module, kind.__qualname__, tuple(value), value, new=True)
        elif isinstance(value, pathlib.PurePath):
            name = "PosixPath" if isinstance(value, pathlib.Path) else kind.__name__
            self.reduce("pathlib", name, value.parts, value)
        else:
            raise self.refuse(value)

    def array(self, numpy: Any, value: Any) -> None:
        copy = numpy.array(value, dtype=value.dtype.newbyteorder("="), order="C")
        if isinstance(value, numpy.generic):
            self.name("numpy._core.multiarray", "scalar")
            self.dtype_of_array(copy.dtype)
            self.save(copy.tobytes())
            self.out += b"\x86R"
            self.remember_object(value)
            return
        self.name("numpy._core.multiarray", "_reconstruct")
        self.name("numpy", "ndarray")
        self.plain_tuple((0,))
        self.save(b"b")
        self.out += b"\x87R"
        self.remember_object(value)
        self.out += b"("
        self.save(1)
        self.plain_tuple(copy.shape)
        self.dtype_of_array(copy.dtype)
        self.save(False)
        self.save(copy.tobytes())
        self.out += b"tb"

    def dtype_of_array(self, dtype: Any) -> None:
        self.name("numpy", "dtype")
        self.plain_tuple((dtype.str[1:], False, True))
        self.out += b"R"
        order = "|" if dtype.itemsize == 1 else "<"
        self.plain_tuple((3, order, None, None, None, -1, -1, 0))
        self.out += b"b"

    def allowed(self, value: Any) -> None:
        """Write an instance of an allowed class by means of its `__reduce_ex__`."""
        reduced = value.__reduce_ex__(2)
        if not isinstance(reduced, tuple):
            raise self.refuse(value)
        function, arguments, state, items, pairs = (*reduced, *[None] * 5)[:5]
        new = getattr(function, "__name__", "") == "__newobj__"
        if new:
            function, *arguments = arguments
        self.reduce(*trust.name_of(function), tuple(arguments), value, new)
        if items is not None:
            self.items(list(items))
        if pairs is not None:
            self.pairs(dict(pairs))
        if state is not None:
            self.save(state)
            self.out += b"b"

    def date(self, value: Any) -> None:
        _, arguments = value.__reduce_ex__(2)[:2]
        self.reduce("datetime", type(value).__name__, arguments, value)


def _text(value: bytes) -> tuple[str, str]:
    return value.decode("latin-1"), "latin1"


_WRITERS: dict[type, Any] = {
    tuple: Pickler.tuple,
    list: Pickler.list,
    dict: Pickler.dict,
    OrderedDict: Pickler.ordered_dict,
    defaultdict: Pickler.default_dict,
    Counter: lambda p, v: p.reduce("collections", "Counter", (dict(v),), v),
    deque: lambda p, v: p.reduce("collections", "deque", (list(v), v.maxlen), v),
    set: lambda p, v: p.reduce("builtins", "set", (list(v),), v),
    frozenset: lambda p, v: p.reduce("builtins", "frozenset", (list(v),), v),
    bytes: lambda p, v: p.reduce("_codecs", "encode", _text(v), v),
    bytearray: lambda p, v: p.reduce("builtins", "bytearray", _text(bytes(v)), v),
    complex: lambda p, v: p.reduce("builtins", "complex", (v.real, v.imag), v),
    range: lambda p, v: p.reduce("builtins", "range", (v.start, v.stop, v.step), v),
    slice: lambda p, v: p.reduce("builtins", "slice", (v.start, v.stop, v.step), v),
    Namespace: Pickler.namespace,
    Tensor: Pickler.tensor,
    Parameter: Pickler.tensor,
    Buffer: Pickler.tensor,
    core.UntypedStorage: Pickler.whole_storage,
    core.TypedStorage: Pickler.whole_storage,
    core.Size: lambda p, v: p.reduce("torch", "Size", (tuple(v),), v),
    core.device: lambda p, v: p.reduce(
        "torch", "device", (v.type,) if v.index is None else (v.type, v.index), v
    ),
    core.dtype: lambda p, v: p.name("torch", str(v).rpartition(".")[2]),
    core.layout: lambda p, v: p.reduce("torch.serialization", "_get_layout", (str(v),), v),
    type(core.sparse_coo): lambda p, v: p.reduce("torch.serialization", "_get_layout", (str(v),), v),
    datetime.datetime: Pickler.date,
    datetime.date: Pickler.date,
    datetime.time: Pickler.date,
    datetime.timedelta: Pickler.date,
    datetime.timezone: lambda p, v: p.reduce("datetime", "timezone", v.__getinitargs__(), v),
}
