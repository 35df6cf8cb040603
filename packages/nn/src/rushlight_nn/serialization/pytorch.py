"""Read and write PyTorch's files, which consist of a pickle of the saved object and the bytes of the storages.

There are two layouts. A *zip* archive has the pickle as the entry `data.pkl` and every storage as an entry `data/<key>`. The
*legacy* layout, of PyTorch before version 1.6, has five pickles (a magic number, the version, properties of the machine, the
object, the keys of the storages), followed by the length and the bytes of each storage. In both layouts, the pickle of the
object refers to a storage by a persistent id: `("storage", class, key, device, elements)`.
"""

from __future__ import annotations

import contextlib
import json
import sys

import rushlight_core as core
from rushlight_core._other_dtypes import OtherDtype

from . import archive, container
from .deferred import bytes_come_later
from .described import Described
from .devices import map_to_device
from .dtypes import StorageType
from .errors import Budget, FormatError
from .geometry import check_bools
from .machine import Machine
from .names import Names, UnknownName
from .pickling import dump
from .source import Source
from .tensor_builders import refuse_quantized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from .machine import Table

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
# The first bytes of a legacy file: the pickle of the magic number.
LEGACY_START = b"\x80\x02\x8a\x0a" + LEGACY_MAGIC.to_bytes(10, "little") + b"."
LEGACY_VERSION = 1001

# Number of bytes within which the pickles of a legacy file end, unless there are very many objects.
_PICKLES = 32 << 20
# Modules and functions with which a file could take control of the process. Errors do not suggest how to allow them.
_CODE = frozenset(
    [
        "ctypes",
        "importlib",
        "marshal",
        "nt",
        "os",
        "pickle",
        "posix",
        "pty",
        "runpy",
        "shutil",
        "socket",
        "subprocess",
        "sys",
        "webbrowser",
    ]
)
_CALLS = frozenset(["__import__", "compile", "eval", "exec", "getattr", "globals", "open", "setattr"])
# Note [Described classes]
# For a named tuple or a member of an enumeration, a pickle contains only the name of the class. Reading such a value
# from the pickle alone would require importing the class. Archives therefore have an additional entry, which PyTorch
# ignores. It is a dictionary from the names of such classes to the fields of the named tuple, or to null for an
# enumeration. Unless the class was allowed, a named tuple is loaded as an instance of a new named tuple class, and a
# member of an enumeration as its value.
_CLASSES = ".rushlight_classes"
_CLASS = 6000  # memory in bytes of a class that is created for a named tuple
# The instructions of a pickle that write to the memo and read from it.
_PUTS, _GETS = ("BINPUT", "LONG_BINPUT", "MEMOIZE"), ("BINGET", "LONG_BINGET")
# The largest numbers of unknown names that an error lists, and that `get_unsafe_globals_in_checkpoint` returns.
_SHOWN, _LISTED = 12, 10_000


def is_archive(start: bytes) -> bool:
    """Return whether a file that begins with the bytes `start` is a zip archive.

    A safetensors file may begin with the same four bytes as a zip archive, but its byte 8 is `{`.
    """
    return start[:4] == b"PK\x03\x04" and start[8:9] != b"{"


def is_legacy(start: bytes) -> bool:
    """Return whether a file that begins with the bytes `start` has the legacy layout."""
    return start.startswith(LEGACY_START)


class _Storages:
    """The storages that the pickle of an object refers to. A storage is created when it is first used.

    Args:
        map_location: the device of the storages, as for :func:`load`.
    """

    def __init__(self, map_location: Any) -> None:
        self.map_location = map_location
        self.made: dict[tuple[str, str], Any] = {}
        self.typed: dict[tuple[str, str, Any], Any] = {}

    def __call__(self, key: Any) -> Any:
        """Return the storage that a persistent id refers to; the storage is untyped if the id has no dtype."""
        # Check types first: the key may contain objects of classes that define comparison.
        is_named = type(key) is tuple and len(key) > 0 and type(key[0]) is str
        if is_named and key[0] == "module":
            raise FormatError(
                "the file contains a whole module, and loading it would run code\n"
                "hint: load the module in PyTorch and save its state_dict()"
            )
        if not is_named or key[0] != "storage" or len(key) not in (5, 6):
            raise FormatError("a persistent id in a pickle does not refer to a storage")
        kind, name, device, count = key[1:5]
        fits = (
            isinstance(kind, StorageType) and type(name) is str and type(device) is str and type(count) is int
        )
        if not fits or count < 0 or count >= 2**59:
            raise FormatError("a reference to a storage must have a class, a name, a device and a valid size")
        if isinstance(kind.dtype, OtherDtype):
            refuse_quantized()
        found = (name, device, kind.dtype)
        if found not in self.typed:
            itemsize = 1 if kind.dtype is None else kind.dtype.itemsize
            if (name, device) not in self.made:
                self.made[name, device] = self.make(name, device, count * itemsize, itemsize, kind.dtype)
            storage = self.made[name, device]
            if storage.nbytes() < count * itemsize:
                raise FormatError(
                    f"storage {name!r:.80} has {storage.nbytes()} bytes, but {count * itemsize} are needed"
                )
            self.typed[found] = storage if kind.dtype is None else _as(storage, kind.dtype)
        if len(key) == 6 and key[5] is not None:
            return self.part(self.typed[found], key[5])
        return self.typed[found]

    def make(self, name: str, device: str, nbytes: int, itemsize: int, dtype: Any) -> Any:
        """Create the storage `name` on its device."""
        raise NotImplementedError

    def part(self, whole: Any, view: Any) -> Any:
        """Return the part of the storage `whole` that the tuple `view` describes: (name, offset, number of elements)."""
        fits = isinstance(view, tuple) and len(view) == 3 and all(type(v) is int and v >= 0 for v in view[1:])
        if not fits or type(whole) is not core.TypedStorage:
            raise FormatError(
                "a view of a storage must be (name, offset, size), with an offset and a size of at least 0"
            )
        item = whole.dtype.itemsize
        begin, end = view[1] * item, (view[1] + view[2]) * item
        if end > whole.nbytes():
            raise FormatError(
                f"a view of elements {view[1]} to {view[1] + view[2]} reaches beyond its storage of {whole.nbytes()} bytes"
            )
        return _as(whole.untyped()[begin:end], whole.dtype)

    def on_device(self, storage: Any, device: str) -> Any:
        """Return `storage` on the device that `map_location` selects."""
        if self.map_location is None and device == "cpu":
            return storage
        data = core._C._tensor_over(storage, core.uint8, [storage.nbytes()], [1], 0)
        return map_to_device(data, device, self.map_location).untyped_storage()


def _as(storage: Any, dtype: Any) -> Any:
    count = storage.nbytes() // dtype.itemsize
    return core.TypedStorage(core._C._tensor_over(storage, dtype, [count], [1], 0))


# Zip ------------------------------------------------------------------------------------------------------------


class _ArchivedStorages(_Storages):
    def __init__(
        self, source: Source, entries: dict[str, archive.Entry], prefix: str, map_location: Any, verify: bool
    ) -> None:
        super().__init__(map_location)
        self.source = source
        self.entries = entries
        self.prefix = prefix
        self.verify = verify

    def make(self, name: str, device: str, nbytes: int, itemsize: int, dtype: Any) -> Any:
        entry = self.entries.get(f"{self.prefix}data/{name}")
        if entry is None:
            raise FormatError(f"storage {name!r:.80} is missing")
        archive.require_plain(entry)
        storage, crc = self.source.storage(entry.begin, entry.size, min(itemsize, 8), self.verify)
        if self.verify and crc != entry.crc:
            raise archive.damaged(entry)
        if dtype == core.bool:
            check_bools(storage)
        return self.on_device(storage, device)


def read_archive(source: Source, map_location: Any, verify: bool, budget: Budget) -> Any:
    """Return the value in a zip archive.

    Args:
        source: the file.
        map_location: the device of the tensors, as for :func:`load`.
        verify: whether to check the bytes of the storages against their checksums. The checksum of the pickle is always
            checked.
        budget: the memory that may be used.

    Raises:
        FormatError: the archive is damaged, or uses classes or functions that are not allowed.
    """
    entries = archive.read_directory(source, budget)
    prefix = _prefix(entries)
    if f"{prefix}constants.pkl" in entries:
        raise FormatError(
            "the file is a TorchScript program, and loading it would run code\n"
            "hint: save the state of the program in PyTorch: torch.save(torch.jit.load(path).state_dict(), new)"
        )
    if f"{prefix}byteorder" in entries:
        order = archive.read_entry(source, entries[f"{prefix}byteorder"])
        if order != b"little":
            raise FormatError(f"the file has the byte order {order[:20]!r}, needs b'little'")
    pickle = archive.read_entry(source, entries[f"{prefix}data.pkl"])
    storages = _ArchivedStorages(source, entries, prefix, map_location, verify)
    machine = Machine(pickle, Names(storages, budget, _classes(source, entries, prefix, budget)), budget)
    value = run(machine)
    if machine.position != len(pickle):
        raise FormatError("there are bytes after the end of the pickle: the file is damaged")
    if verify:  # also check entries that nothing refers to, so that any change is detected
        used = {f"{prefix}data/{name}" for name, _ in storages.made} | {f"{prefix}data.pkl"}
        for name, entry in entries.items():
            archive.require_plain(entry)
            if name not in used and source.checksum(entry.begin, entry.size) != entry.crc:
                raise archive.damaged(entry)
    return value


def _classes(
    source: Source, entries: dict[str, archive.Entry], prefix: str, budget: Budget
) -> dict[str, Described]:
    """Return the classes whose descriptions `write_archive` stored in the archive; see Note [Described classes]."""
    entry = entries.get(prefix + _CLASSES)
    if entry is None:
        return {}
    found = container.parse_json(archive.read_entry(source, entry), budget)
    budget.charge(_CLASS * len(found))
    return {name: Described(name, fields) for name, fields in found.items()}


def _prefix(entries: dict[str, archive.Entry]) -> str:
    """Return the name of the archive's folder that contains all entries, with a slash at the end of the name."""
    found = [name for name in entries if name == "data.pkl" or name.endswith("/data.pkl")]
    folders = {name.removesuffix("data.pkl") for name in found if name.count("/") <= 1}
    if len(folders) != 1:
        raise FormatError(
            "the file is a zip archive, but not a file of PyTorch: it does not have exactly one entry data.pkl"
        )
    return folders.pop()


def run(machine: Machine) -> Any:
    """Let `machine` execute its next pickle, and return the value. If names are unknown, raise an error that lists them."""
    begin = machine.position
    try:
        return machine.load()
    except UnknownName as error:
        names = _names_in(machine.data[begin:], machine.table, _SHOWN + 1)
        raise FormatError(_explain(list(dict.fromkeys([str(error), *names])))) from None


def _names_in(data: bytes, table: Table, limit: int) -> list[str]:
    """Return at most `limit` names of classes and functions that a pickle uses but `table` lacks, without executing it.

    The instruction STACK_GLOBAL pops the module and the name from the stack. The instructions before
    STACK_GLOBAL push the module and the name, as literals or from the memo. Therefore this function records
    the last two values that were pushed, and the strings in the memo.
    """
    import warnings
    from pickletools import genops

    unknown: dict[str, None] = {}
    memo: list[Any] = []
    # The last two values put on the stack, with None for values that are not strings.
    last: list[Any] = [None, None]
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about escapes in strings of Python 2
        for opcode, argument, _ in genops(data):
            name = value = None
            if opcode.name in _PUTS:
                index = len(memo) if argument is None else argument
                memo[index : index + 1] = [last[1]]  # indices are assigned in order
                continue
            if opcode.name == "GLOBAL":
                name = str(argument).replace(" ", ".", 1)
            elif opcode.name == "STACK_GLOBAL" and None not in last:
                name = ".".join(last)
            elif opcode.name in _GETS and argument is not None:
                value = memo[argument]
            elif isinstance(argument, str):
                value = argument
            if opcode.name != "FRAME":
                last = [last[1], value]
            if name is not None and not table.has(name):
                unknown[name] = None
                if len(unknown) == limit:
                    break
    return list(unknown)


def unknown_names(source: Source, budget: Budget) -> list[str]:
    """Return the names of classes and functions in a PyTorch file that :func:`read_archive` and :func:`read_legacy` refuse.

    Raises:
        FormatError: the file is damaged, or is not a PyTorch file.
    """
    names = Names(_no_storage, budget)
    start = source.read(0, min(source.size, 16))
    if is_legacy(start):
        machine = Machine(source.read(0, min(source.size, _PICKLES)), names, budget)
        for _ in range(3):  # the pickles before the structure
            machine.load()
        return _names_in(machine.data[machine.position :], names, _LISTED)
    if not is_archive(start):
        raise FormatError("the file is not a file of PyTorch")
    entries = archive.read_directory(source, budget)
    prefix = _prefix(entries)
    names = Names(_no_storage, budget, _classes(source, entries, prefix, budget))
    return _names_in(archive.read_entry(source, entries[f"{prefix}data.pkl"]), names, _LISTED)


def _no_storage(key: Any) -> Any:
    raise FormatError("a pickle refers to a storage, but this file has no storages")


def _explain(names: list[str]) -> str:
    names = [name if name.isprintable() else ascii(name) for name in names]
    shown = ", ".join(name[:100] for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    text = (
        f"the file needs classes or functions that are not allowed: {shown}. None of them was called, "
        "and weights_only=False does"
        " not allow them\n"
        "hint: "
    )
    if any(name.startswith("torch.nn.modules.") for name in names):
        return text + (
            "the file contains a whole module, and loading it would run code: save only its state with "
            "torch.save(model.state_dict(), path), and load it with model.load_state_dict(torch.load(path))"
        )
    code = [name for name in names if _is_code(name)]
    if code:
        return text + f"do not load this file: it would run {code[0][:100]}, which is not needed for data"
    classes = ", ".join(name.rpartition(".")[2][:60] for name in names[:3])
    return text + (
        "if you trust the file, import these classes and functions and allow them: "
        f"serialization.add_safe_globals([{classes}{', ...' if len(names) > 3 else ''}])"
    )


def _is_code(name: str) -> bool:
    module, _, rest = name.partition(".")
    return module in _CODE or (module in ("builtins", "__builtin__") and rest in _CALLS)


# Legacy ---------------------------------------------------------------------------------------------------------


class _FollowingStorages(_Storages):
    """Storages whose bytes follow the pickle of the object in the file: memory is allocated first, and filled later."""

    def __init__(self, source: Source, map_location: Any) -> None:
        super().__init__(map_location)
        self.left = source.size
        self.hosts: dict[str, Any] = {}
        self.targets: dict[str, Any] = {}
        self.kinds: dict[str, Any] = {}

    def make(self, name: str, device: str, nbytes: int, itemsize: int, dtype: Any) -> Any:
        self.left -= nbytes
        if self.left < 0:
            raise FormatError("truncated: the storages are larger than the file")
        if name in self.hosts:
            raise FormatError(f"the pickle states two devices for storage {name!r:.80}")
        host = core.empty(nbytes, dtype=core.uint8, device="cpu").untyped_storage()
        self.hosts[name], self.kinds[name] = host, (itemsize, dtype)
        self.targets[name] = self.on_device(host, device)
        return self.targets[name]


def read_legacy(source: Source, map_location: Any, budget: Budget) -> Any:
    """Return the value in a legacy file, which has no checksums.

    Raises:
        FormatError: the file is damaged, or uses classes or functions that are not allowed.
    """
    try:
        return _read_legacy(source, source.read(0, min(source.size, _PICKLES)), map_location, budget)
    except FormatError:
        if source.size <= _PICKLES:
            raise
    return _read_legacy(source, source.read(0, source.size), map_location, budget)


def _read_legacy(source: Source, data: bytes, map_location: Any, budget: Budget) -> Any:
    storages = _FollowingStorages(source, map_location)
    machine = Machine(data, Names(storages, budget), budget)
    machine.load()
    version = machine.load()
    if type(version) is not int or version != LEGACY_VERSION:
        raise FormatError(
            f"the file does not have version {LEGACY_VERSION} of the legacy layout, which is the only one"
        )
    numbers = machine.load()
    if not isinstance(numbers, dict) or numbers.get("little_endian") is not True:
        raise FormatError(
            "the file was written on a machine with another byte order, and only little-endian files "
            "can be read"
        )
    with bytes_come_later() as deferred:
        value = run(machine)
    keys = machine.load()
    if (
        type(keys) is not list
        or not all(type(k) is str for k in keys)
        or sorted(keys) != sorted(storages.hosts)
    ):
        raise FormatError(
            "the storages that the file lists are not those that its pickle refers to: the file is damaged"
        )
    position = machine.position
    for key in keys:
        host = storages.hosts[key]
        itemsize, dtype = storages.kinds[key]
        if int.from_bytes(source.read(position, 8), "little") * itemsize != host.nbytes():
            raise FormatError(f"the length of storage {key!r:.80} is not the length that the pickle states")
        source.fill(host, position + 8)
        position += 8 + host.nbytes()
        if dtype == core.bool:
            check_bools(host)
        target = storages.targets[key]
        if target is not host:
            filled = core._C._tensor_over(host, core.uint8, [host.nbytes()], [1], 0)
            core._C._tensor_over(target, core.uint8, [host.nbytes()], [1], 0).copy_(filled)
    for work in deferred:
        work()
    if position != source.size and not _another_follows(source, position):
        raise FormatError("there are bytes after the last storage: the file is damaged")
    return value


def _another_follows(source: Source, position: int) -> bool:
    """Return whether another file begins at `position` of a stream, and move the stream there if so."""
    count = min(len(LEGACY_START), source.size - position)
    return source.read(position, count) == LEGACY_START and source.go_to(position)


# Writing ----------------------------------------------------------------------------------------------------


def write_archive(obj: Any, file: BinaryIO, folder: str, record_order: bool = True) -> None:
    """Write `obj` to `file` as a zip archive.

    Args:
        obj: the object to write.
        file: the open file to write to.
        folder: the name of the archive's folder.
        record_order: whether to write the byte order.

    Raises:
        TypeError: `obj` contains a value of a type that cannot be saved.
    """
    pickle, storages, classes = dump(obj)
    writer = archive.Writer(file)
    writer.add(f"{folder}/data.pkl", pickle)
    if classes:
        writer.add(f"{folder}/{_CLASSES}", json.dumps(classes).encode())
    writer.add(f"{folder}/.format_version", b"1")
    writer.add(f"{folder}/.storage_alignment", str(archive.ALIGNMENT).encode())
    if record_order:
        writer.add(f"{folder}/byteorder", sys.byteorder.encode())
    for stored in storages:
        writer.add(f"{folder}/data/{stored.key}", stored.memory())
    writer.add(f"{folder}/version", b"3\n")
    writer.finish()


def write_legacy(obj: Any, file: BinaryIO) -> None:
    """Write `obj` to `file` in the legacy layout.

    Raises:
        TypeError: `obj` contains a value of a type that cannot be saved.
    """
    pickle, storages, classes = dump(obj, legacy=True)
    if classes:
        raise TypeError(
            f"save: PyTorch's file format before version 1.6 cannot store the class {next(iter(classes))}\n"
            "hint: leave out _use_new_zipfile_serialization=False, or allow the class by add_safe_globals"
        )
    for stored in storages:
        if stored.dtype is None:
            raise TypeError(
                "save: PyTorch's file format before version 1.6 cannot store newer dtypes, untyped storages, or tensors "
                "of different dtypes that share a storage\n"
                "hint: leave out _use_new_zipfile_serialization=False"
            )
    sizes = {"short": 2, "int": 4, "long": 4}
    numbers = {
        "protocol_version": LEGACY_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": sizes,
    }
    storages.sort(key=lambda stored: stored.key)
    for value in (LEGACY_MAGIC, LEGACY_VERSION, numbers):
        file.write(dump(value)[0])
    file.write(pickle)
    file.write(dump([stored.key for stored in storages])[0])
    for stored in storages:
        memory = stored.memory()
        file.write((len(memory) // stored.itemsize).to_bytes(8, "little"))
        file.write(memory)
