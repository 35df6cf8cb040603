"""Save and load checkpoints: state dicts and nested containers of data, in PyTorch's file formats or in safetensors files.

The files contain only data, and loading a file executes no code from it. PyTorch can read the files that
`save` writes in PyTorch's formats (zip archives and the older layout), and `load` can read PyTorch's files.
Many programs read safetensors files, in which tensors are named by their paths, such as `model.conv1.weight`.
The rest of the structure and a checksum of every tensor are stored as JSON in the metadata of the file.
"""

from __future__ import annotations

import os

from . import checkpoint, pytorch, shards
from .errors import Budget, CheckpointError, EmptyFileError, FormatError
from .replacing import replace_file
from .source import Source
from .trust import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

_PYTORCH = (".pt", ".pth", ".ckpt", ".bin")


def save(
    obj: Any,
    f: str | os.PathLike[str] | BinaryIO,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    *,
    format: str | None = None,
    max_shard_size: int | str | None = None,
) -> None:
    """Save `obj` to the file `f`, replacing an existing file atomically.

    The data is written to a new file, which replaces the old file once it is complete and on disk. After a crash, `f` is
    therefore either the old file or the complete new file. Tensors that share memory share it again after loading.

    Args:
        obj: tensors, numbers, strings, bytes, dtypes, devices, NumPy arrays and scalars, dates, paths, and
            lists, tuples, sets, dictionaries and namespaces of these, such as the state dicts of modules,
            optimizers and schedulers.
        f: a path, or an open binary file. An open file is written directly and then flushed.
        pickle_module, pickle_protocol: accepted for compatibility; the pickle in PyTorch's files always has protocol
            2.
        _use_new_zipfile_serialization: whether to write a zip archive; False selects the layout that PyTorch used before
            version 1.6.
        _disable_byteorder_record: whether to omit the byte order from PyTorch's archive.
        format: "pytorch" or "safetensors". The default is "pytorch" for paths that end in .pt, .pth, .ckpt or .bin, and
            "safetensors" for other paths and for open files.
        max_shard_size: the maximum size of a file, as a number of bytes or a string such as "5GB". Larger checkpoints are
            split into several safetensors files with an index, as Hugging Face's libraries do.

    Raises:
        TypeError: `obj` contains a value of an unsupported type. The message names the position of the value in `obj`
            and suggests a remedy.
        ValueError: `format` is unknown, or cannot be combined with other arguments.
        OSError: the file cannot be written.

    Example:
        >>> model = nn.Linear(2, 3)
        >>> torch.save({"model": model.state_dict(), "epoch": 5}, "model.pt")
        >>> checkpoint = torch.load("model.pt")
        >>> checkpoint["epoch"], list(checkpoint["model"])
        (5, ['weight', 'bias'])
    """
    is_stream = hasattr(f, "write")
    kind = format
    if kind is None:
        wanted = not _use_new_zipfile_serialization or _disable_byteorder_record
        suffix = "" if is_stream else os.path.splitext(os.fspath(f))[1]  # type: ignore[arg-type]
        kind = "pytorch" if wanted or suffix in _PYTORCH else "safetensors"
    if kind not in ("pytorch", "safetensors"):
        raise ValueError(f"save(format): got {format!r}, needs 'pytorch' or 'safetensors'")
    if kind == "safetensors" and not _use_new_zipfile_serialization:
        raise ValueError("save(_use_new_zipfile_serialization): False requires format='pytorch'")
    if max_shard_size is not None:
        if is_stream or kind != "safetensors":
            raise ValueError("save(max_shard_size): requires a path, and the format safetensors")
        shards.write(obj, os.fspath(f), shards.size_in_bytes(max_shard_size))  # type: ignore[arg-type]
        return

    def write(file: BinaryIO) -> None:
        if kind == "safetensors":
            checkpoint.write(obj, file)
        elif _use_new_zipfile_serialization:
            pytorch.write_archive(obj, file, "archive", not _disable_byteorder_record)
        else:
            pytorch.write_legacy(obj, file)

    if is_stream:
        write(f)  # type: ignore[arg-type]
        if hasattr(f, "flush"):
            f.flush()  # the caller may rename the file or read it next
    else:
        replace_file(os.fspath(f), write)  # type: ignore[arg-type]
        if kind == "safetensors":
            shards.remove_index(os.fspath(f))  # type: ignore[arg-type]


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | str | None = None,
    verify: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load a file that :func:`save` or PyTorch's `torch.save` wrote, or any other safetensors file as a dict of tensors.

    Args:
        f: a path, or an open binary file. For a checkpoint in several shards, `f` is the path of the index.
        map_location: the device of the loaded tensors, given as a device, a dictionary from saved devices to
            new devices, or a function. The function takes a tensor on the CPU and the name of the device it
            was saved from, and returns the tensor to use, or None for the default. By default, tensors are
            loaded to the device they were saved from.
        pickle_module: accepted for compatibility, and not used: no pickle is executed.
        weights_only: accepted for compatibility. A file that names a class or function that is not allowed is
            always refused; see :func:`add_safe_globals`.
        mmap: whether to map the file into memory. Data of a mapped file is read when tensors are used, and
            all processes that load the file share the memory. With True or "c", writing to a tensor changes a
            copy that is private to the process; with "r", writing to a tensor raises an error. See Note
            [Mapped files].
        verify: whether to compare the checksum of each tensor with the checksum in the file. By default, the checksums of
            tensors are compared unless `mmap` is used. The checksum of the containers and of all values that
            are not tensors is always compared.
        pickle_load_args: only `encoding` is accepted, an argument that PyTorch uses for files written by Python 2.

    Raises:
        CheckpointError: the file is not a checkpoint, is truncated or damaged, or names a class or function
            that is not allowed. If the file is empty, the error is also an EOFError.
        TypeError: a keyword argument is unknown.
        ValueError: `mmap` is used with an open file.
        OSError: the file cannot be opened or read.

    Example:
        >>> torch.save({"weight": torch.arange(3)}, "weights.safetensors")
        >>> torch.load("weights.safetensors", map_location="cpu")
        {'weight': tensor([0, 1, 2])}
    """
    unknown = sorted(set(pickle_load_args) - {"encoding"})
    if unknown:
        raise TypeError(f"load(): got an unknown argument {unknown[0]!r}")
    if mmap not in (None, False, True, "c", "r"):
        raise ValueError(f"load(mmap): got {mmap!r}, needs True, False, 'c' or 'r'")
    mapping = None if not mmap else "r" if mmap == "r" else "c"
    if not hasattr(f, "read"):
        f = shards.index_of(os.fspath(f))
    try:
        with Source(f, mapping) as source:
            if source.size == 0:
                raise EmptyFileError(_name_of(f), "the file is empty")
            return _read(source, map_location, verify)
    except FormatError as error:
        raise CheckpointError(_name_of(f), str(error)) from error.__cause__


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike[str] | BinaryIO) -> list[str]:
    """Return the names in a PyTorch file that :func:`load` refuses unless :func:`add_safe_globals` allows them.

    Raises:
        CheckpointError: the file is damaged, or is not a PyTorch file.

    Example:
        >>> torch.save({"weight": torch.arange(3)}, "weights.pt")
        >>> torch.serialization.get_unsafe_globals_in_checkpoint("weights.pt")
        []
    """
    try:
        with Source(f) as source:
            return pytorch.unknown_names(source, Budget(source.size))
    except FormatError as error:
        raise CheckpointError(_name_of(f), str(error)) from None


def _name_of(f: Any) -> str:
    return str(getattr(f, "name", "<file>")) if hasattr(f, "read") else os.fspath(f)


def _read(source: Source, map_location: Any, verify: bool | None) -> Any:
    budget = Budget(source.size)
    start = source.read(0, min(source.size, 16))
    if pytorch.is_archive(start):
        checked = verify if verify is not None else source.mapping is None
        return pytorch.read_archive(source, map_location, checked, budget)
    if pytorch.is_legacy(start):
        if source.mapping is not None or verify:
            raise FormatError(
                "the file has the layout of PyTorch before 1.6, which has neither the alignment for mmap nor the checksums "
                "for verify=True\n"
                "hint: convert the file with save(load(path), path)"
            )
        return pytorch.read_legacy(source, map_location, budget)
    if shards.is_index(start):
        return shards.read(source, map_location, verify, budget)
    return checkpoint.read(source, map_location, verify, budget)


__all__ = [
    "CheckpointError",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
]
