"""Saving and loading checkpoints: state dicts and nested containers of data, in PyTorch's files or in safetensors files.

Both kinds hold data and nothing else: nothing in them is ever executed. PyTorch's files, zip archives and the older
layout, are exchanged with PyTorch, both ways. Safetensors files can be read by many programs: tensors are named by
their path, such as `model.conv1.weight`; the rest of the structure, and a checksum of every tensor, are JSON in the
file's metadata.
"""

from __future__ import annotations

import os

from . import checkpoint, pytorch, shards
from .errors import Budget, CheckpointError, FormatError
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
    """Write `obj` to the file `f`, all or nothing.

    The data goes to a new file, which replaces the old one when it is complete and on disk: a crash leaves the old
    file or the new one. Tensors that share memory share it again after loading.

    Args:
        obj: tensors, numbers, strings, bytes, dtypes, devices, NumPy's arrays and numbers, dates, paths, and lists,
            tuples, sets, dictionaries and namespaces of these, such as the state dicts of modules, optimizers and
            schedulers.
        f: a path, or an open binary file, which is written to as it is, and flushed.
        pickle_module, pickle_protocol: accepted for compatibility; the pickle in PyTorch's files always has protocol
            2.
        _use_new_zipfile_serialization: False for the layout that PyTorch wrote before 1.6.
        _disable_byteorder_record: whether PyTorch's archive omits the byte order.
        format: "pytorch" or "safetensors". By default PyTorch's for paths that end in .pt, .pth, .ckpt or .bin, and
            safetensors for all others and for open files.
        max_shard_size: the largest size of a file, in bytes or for example "5GB". The tensors are split among several
            safetensors files with an index, as Hugging Face's libraries do.

    Raises:
        TypeError: something in `obj` is of another type; the message names its path, and what to do.
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
        raise ValueError(
            "save(_use_new_zipfile_serialization): False chooses a layout of PyTorch's, not safetensors"
        )
    if max_shard_size is not None:
        if is_stream or kind != "safetensors":
            raise ValueError("save(max_shard_size): shards are safetensors files, and need a path")
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
            f.flush()  # when it gets its name, it is complete
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
    """Read a file of :func:`save` or PyTorch's `torch.save`, or any other safetensors file as a dict of tensors.

    Args:
        f: a path, or an open binary file. A path may name the index of a file in several shards.
        map_location: where tensors go: a device, a dictionary from saved to new devices, or a function of a tensor
            on the CPU and the name of its saved device, which returns the tensor to use or None. By default, where
            they were when they were saved.
        pickle_module: accepted for compatibility; no pickle is run.
        weights_only: accepted for compatibility: a file that contains more than data is refused in any case. See
            :func:`add_safe_globals`.
        mmap: True for tensors over the file itself, which is read when they are used: processes that load it share
            its memory. Writing to them changes a copy of this process; with "r" it raises. See Note [Mapped files].
        verify: whether the checksums of tensors are compared with their bytes. By default they are where the bytes
            are read, and with `mmap` are not. That of the structure always is.
        pickle_load_args: `encoding`, which PyTorch takes for files of Python 2, is accepted.

    Raises:
        CheckpointError: the file is not a checkpoint, is truncated, was altered, or contains more than data.
        TypeError: an argument is not known.
        ValueError: an open file is to be mapped.
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
            return _read(source, map_location, verify)
    except FormatError as error:
        raise CheckpointError(_name_of(f), str(error)) from error.__cause__


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike[str] | BinaryIO) -> list[str]:
    """Return the names in a file of PyTorch's that :func:`load` refuses, unless :func:`add_safe_globals` allows them.

    Raises:
        CheckpointError: the file is damaged, or none of PyTorch's.

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
                "it has PyTorch's layout before 1.6, which supports neither mmap nor verify=True (alignment, checksums)\n"
                "hint: save(load(path), path) converts the file"
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
