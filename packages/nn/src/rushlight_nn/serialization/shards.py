"""Read and write checkpoints in several files with an index, in the layout of Hugging Face's libraries.

`model.safetensors` becomes `model-00001-of-00003.safetensors` and so on, and the `weight_map` in
`model.safetensors.index.json` maps each tensor name to a file. The `metadata` of the index contain the
description of the structure and the checksums.

Note [Replacing shards]
The index combines the files into one checkpoint. First, the new shards are written under file names that are not in use.
Then the index is replaced atomically, and finally the old shards are removed. The old checkpoint therefore remains complete
until the new index is written.

Note [Whose shards] A file is removed only if its name is one that `write` gives to shards of this index, and
if the header of the file begins with the metadata that `_mark_of` returns, which contain the name of the
index. Shards that a killed `save` left behind have such names and metadata, too. Files that are listed in an
index in the folder are not removed, and neither are files that another program wrote. Each call of `save`
holds a shared lock on the folder. A shard that is not listed in any index may belong to another call of
`save` that has not written its index yet. Therefore unlisted shards are removed only by a call of `save` that
can obtain an exclusive lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator

from rushlight_core import Tensor

from . import checkpoint, container
from .devices import map_to_device
from .errors import Budget, FormatError
from .replacing import remove_abandoned, replace_file
from .source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_INDEX = ".index.json"
_WORKERS = 4
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def size_in_bytes(size: int | str) -> int:
    """Return the number of bytes for `size`: an int, or a number with a unit, such as "5GB" or "500 MiB".

    Raises:
        ValueError: `size` is neither an int nor a number with a unit, or is not positive.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]I?B)?\s*", str(size).upper())
    nbytes = int(float(found[1]) * _UNITS[found[2] or ""]) if found and type(size) in (int, str) else 0
    if nbytes <= 0:
        raise ValueError(
            f"save(max_shard_size): got {size!r}, needs a number of bytes, such as 5_000_000_000 or '5GB'"
        )
    return nbytes


# Writing ----------------------------------------------------------------------------------------------------


def write(obj: Any, path: str, limit: int) -> None:
    """Write `obj` to one file or, if it is too large, to an index and shards of at most `limit` bytes each.

    A tensor larger than `limit` is written to a separate shard.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    layout = checkpoint.Layout(obj)
    shards = _split(layout.tensors, limit)
    if len(shards) <= 1:
        document = layout.document(layout.checksums())
        metadata = checkpoint.metadata_of(document)
        replace_file(path, lambda file: container.write(file, layout.tensors, metadata))
        remove_index(path)
        return
    with _locked(os.path.dirname(path)) as lock:
        old = _shards_of(path)
        _write_shards(path, layout, shards)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # the single file that the shards replace
        _clean(path, lock, old)


def _write_shards(path: str, layout: checkpoint.Layout, shards: list[dict[str, Tensor]]) -> None:
    """Write the shards and then the index; remove the shards if an error occurs."""
    folder, names = os.path.dirname(path), _free_names(path, len(shards))
    checksums: dict[str, int] = {}

    def write_shard(number: int) -> None:
        shard = os.path.join(folder, names[number])
        replace_file(shard, lambda file: container.write(file, shards[number], _mark_of(path), checksums))

    try:
        _in_parallel(write_shard, len(shards))
        index = {
            "metadata": {
                "total_size": sum(tensor.nbytes for tensor in layout.tensors.values()),
                **checkpoint.metadata_of(layout.document(checksums)),
            },
            "weight_map": {name: names[i] for i, shard in enumerate(shards) for name in shard},
        }
        text = json.dumps(index, indent=2).encode()
        replace_file(path + _INDEX, lambda file: file.write(text))
    except BaseException:
        _remove(folder, names)
        raise


def _split(tensors: dict[str, Tensor], limit: int) -> list[dict[str, Tensor]]:
    shards: list[dict[str, Tensor]] = []
    left = -1
    for name, tensor in tensors.items():
        if not shards or tensor.nbytes > left:
            shards.append({})
            left = limit
        shards[-1][name] = tensor
        left -= tensor.nbytes
    return shards


def _free_names(path: str, count: int) -> list[str]:
    """Return `count` file names for shards, none of which is the name of an existing file."""
    folder, (stem, suffix) = os.path.dirname(path), os.path.splitext(os.path.basename(path))
    mark = ""
    while True:
        names = [f"{stem}{mark}-{i + 1:05}-of-{count:05}{suffix}" for i in range(count)]
        if not any(os.path.lexists(os.path.join(folder, name)) for name in names):
            return names
        mark = f"-{os.urandom(4).hex()}"


def _remove(folder: str, names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))


# Removing ---------------------------------------------------------------------------------------------------


def remove_index(path: str) -> None:
    """Remove the index and the shards that `write` wrote for `path`, after a single file has replaced them."""
    with _locked(os.path.dirname(path)) as lock:
        old = _shards_of(path)
        if old:
            os.unlink(path + _INDEX)
        _clean(path, lock, old)


def _shards_of(path: str) -> set[str]:
    """Return the names of the shards in the index of `path`.

    The set is empty if there is no such index, or if another program wrote the index.
    """
    try:
        with Source(path + _INDEX) as source:
            metadata, names = _parse(source, Budget(source.size))
    except (OSError, FormatError):
        return set()
    return set(names.values()) if checkpoint.is_described(metadata) else set()


def _mark_of(path: str) -> dict[str, str]:
    """Return the metadata in the header of a shard that mark it as a shard of the index of `path`."""
    return {"format": "pt", "rushlight.index": os.path.basename(path) + _INDEX}


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[int]:
    """Hold a shared lock on `folder` during the block, and yield a file descriptor of the folder."""
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some file systems do not support locks
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield descriptor
    finally:
        os.close(descriptor)


def _clean(path: str, lock: int, old: set[str]) -> None:
    """Remove the shards of `path` that are not listed in any index.

    If no exclusive lock can be obtained, only shards in `old` are removed.
    """
    alone = True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        alone = False  # a later save removes the other shards
    folder = os.path.dirname(path)
    stem, suffix = map(re.escape, os.path.splitext(os.path.basename(path)))
    shard = re.compile(rf"{stem}(-[0-9a-f]{{8}})?-\d{{5,}}-of-\d{{5,}}{suffix}")
    found = os.listdir(folder or ".")
    ours = [name for name in found if shard.fullmatch(name) and (alone or name in old)]
    ours = [name for name in ours if _is_shard_of(path, os.path.join(folder, name))]
    if ours:
        try:
            named = {name for index in found if index.endswith(_INDEX) for name in _names_in(folder, index)}
        except (OSError, FormatError):
            return  # the files of an unreadable index are unknown, so remove nothing
        _remove(folder, [name for name in ours if name not in named])
    if alone:
        remove_abandoned(lock, f"(?:{shard.pattern}|{re.escape(os.path.basename(path) + _INDEX)})")


def _is_shard_of(path: str, shard: str) -> bool:
    """Return whether `write` wrote the file `shard` for the index of `path`."""
    start = json.dumps({"__metadata__": _mark_of(path)}, separators=(",", ":"))[:-1].encode()
    try:
        descriptor = os.open(shard, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return is_file and os.pread(descriptor, 8 + len(start), 0)[8:] == start
    finally:
        os.close(descriptor)


def _names_in(folder: str, index: str) -> Iterable[str]:
    """Return the file names of the shards in an index."""
    with Source(os.path.join(folder, index)) as source:
        return _parse(source, Budget(source.size))[1].values()


def _in_parallel(work: Callable[[int], Any], count: int) -> list[Any]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(_WORKERS, count)) as pool:
        return list(pool.map(work, range(count)))


# Reading ----------------------------------------------------------------------------------------------------


def index_of(path: str) -> str:
    """Return the path of the file to load: `path`, or the path of its index if only the index exists."""
    index = path + _INDEX
    return index if not os.path.exists(path) and os.path.exists(index) else path


def is_index(start: bytes) -> bool:
    """Return whether a file that begins with the bytes `start` is a JSON index and not a safetensors file."""
    return start[:1] == b"{" and int.from_bytes(start[:8], "little") > container.MAX_HEADER_BYTES


def _parse(source: Source, budget: Budget) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the metadata of an index, and a dictionary from tensor names to file names of shards."""
    if source.size > container.MAX_HEADER_BYTES:
        raise FormatError("the file is too large for an index")
    index = container.parse_json(source.read(0, source.size), budget)
    names, metadata = index.get("weight_map"), index.get("metadata", {})
    if not isinstance(names, dict) or not isinstance(metadata, dict):
        raise FormatError("the file is JSON, but not an index of shards: the entry weight_map is missing")
    for name in names.values():
        if (
            not isinstance(name, str)
            or name in ("", ".", "..")
            or "/" in name
            or "\\" in name
            or "\0" in name
        ):
            raise FormatError(
                f"the index lists the shard {name!r:.80}, which must be the name of a file in the same folder"
            )
    return metadata, names


def read(source: Source, map_location: Any, verify: bool | None, budget: Budget) -> Any:
    """Return the object that was saved with an index, or a dictionary of tensors if another program wrote the index.

    Raises:
        FormatError: a shard is missing or damaged.
    """
    metadata, names = _parse(source, budget)
    if source.descriptor < 0:
        raise FormatError(
            "the open file is the index of a checkpoint in several files, which are found by the index's "
            "path\nhint: pass its path to load()"
        )
    files = sorted(set(names.values()))
    folder = os.path.dirname(source.name)
    document = checkpoint.read_document(metadata, budget) if checkpoint.is_described(metadata) else None
    read_one = functools.partial(
        _read_shard, folder, files, names, document, source.mapping, verify, map_location
    )
    stored: dict[str, Any] = {}
    for found in _in_parallel(read_one, len(files)):
        stored.update(found)
    missing = [name for name in names if name not in stored and not (document and name in document["copies"])]
    if missing:
        raise FormatError(f"tensor {missing[0]!r:.80} is not in the shard {names[missing[0]]!r:.80}")
    if document is not None:
        return checkpoint.restore(document, stored, map_location)
    return {name: stored[name] for name in names}


def _read_shard(
    folder: str,
    files: list[str],
    names: dict[str, str],
    document: dict[str, Any] | None,
    mapping: str | None,
    verify: bool | None,
    map_location: Any,
    number: int,
) -> dict[str, Any]:
    """Return the tensors of the shard `files[number]`, as a dictionary from names to tensors."""
    from . import pytorch

    path = os.path.join(folder, files[number])
    try:
        source = Source(path, mapping)
    except FileNotFoundError:
        raise FormatError(f"the shard {files[number]!r:.80} of the index is missing") from None
    except FormatError as error:
        raise FormatError(f"in its shard {files[number]!r:.80}: {error}") from None
    with source:
        budget = Budget(source.size)
        start = source.read(0, min(source.size, 16))
        try:
            if document is None and pytorch.is_archive(start):
                checked = verify if verify is not None else mapping is None
                found = pytorch.read_archive(source, map_location, checked, budget)
                if not isinstance(found, dict):
                    raise FormatError(
                        f"the file must contain a dictionary of tensors, got {type(found).__name__}"
                    )
            elif document is None and pytorch.is_legacy(start) and mapping is None and not verify:
                found = pytorch.read_legacy(source, map_location, budget)
            else:
                entries = container.read_header(source, budget)[1]
                if document is not None:
                    found = checkpoint.read_stored(source, entries, document, verify)
                elif verify:
                    raise FormatError(
                        "verify=True needs checksums, but the file has none; another program wrote it"
                    )
                else:
                    found = {}
                    for entry in entries:
                        found[entry.name] = map_to_device(
                            container.read_tensor(source, entry, False)[0], "cpu", map_location
                        )
        except FormatError as error:
            raise FormatError(f"in its shard {files[number]!r:.80}: {error}") from error.__cause__
    return {name: value for name, value in found.items() if names.get(name) == files[number]}
