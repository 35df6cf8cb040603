"""Saving and loading checkpoints: state dicts and nested containers of data, in safetensors files.

A checkpoint is a safetensors file, which other programs can read: its tensors are named by their place, such
as `model.conv1.weight`. The rest of the structure, and a checksum of every tensor, are JSON in the file's
metadata. Nothing in it is ever executed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from ..parameter import Buffer, Parameter
from . import container, sharing
from .structure import Encoder, StructureError, decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

_KEY = "rushlight"
_VERSION = 1


class CheckpointError(RuntimeError):
    """A file is no checkpoint, is truncated, or was altered. `path` names it."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"load({path!r}): {what}")
        self.path = path


# Saving -----------------------------------------------------------------------------------------------------


def save(
    obj: Any,
    f: str | os.PathLike[str] | BinaryIO,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write `obj` to the file `f`, all or nothing.

    The data goes to a new file beside the old one, which it replaces when it is complete and on disk: a crash
        leaves
    the old file or the new one. Memory shared by several tensors is stored once, and shared again after
    loading.

    Args:
        obj: None, bool, int, float, str, tensors, dtypes, devices, and lists, tuples, dicts and OrderedDicts
            of these, such as the state dicts of modules, optimizers and schedulers.
        f: a path, or an open binary file, which is written to as it is.
        pickle_module, pickle_protocol, and those that follow: accepted for compatibility. No pickle is written.

    Raises:
        TypeError: something in `obj` is of another type; the message says where, and what to do.
        OSError: the file cannot be written.
    """
    encoder = Encoder()
    try:
        root = encoder.encode(obj)
    except RecursionError:
        raise ValueError("save: the object is nested too deeply") from None
    tensors: dict[str, Tensor] = {}
    descriptions: list[dict[str, Any]] = [{} for _ in encoder.tensors]
    for stored in sharing.gather(encoder.tensors, encoder.paths):
        name = _free_name(encoder.paths[min(stored.members)], tensors)
        tensors[name] = stored.data
        for number, view in stored.members.items():
            descriptions[number] = _describe(encoder.tensors[number], name, view)
    document = json.dumps(
        {
            "version": _VERSION,
            "root": root,
            "tensors": descriptions,
            "crc32": {name: _checksum(t, container.memory_of(t)) for name, t in tensors.items()},
        },
        separators=(",", ":"),
        allow_nan=False,
    )
    metadata = {_KEY: document, f"{_KEY}.crc32": str(zlib.crc32(document.encode()))}
    if hasattr(f, "write"):
        container.write(f, tensors, metadata)  # type: ignore[arg-type]
    else:
        _replace_file(os.fspath(f), lambda file: container.write(file, tensors, metadata))


def _free_name(path: str, taken: dict[str, Any]) -> str:
    name, count = path, 1
    while name in taken or name == "__metadata__":
        count += 1
        name = f"{path}#{count}"
    return name


def _describe(tensor: Tensor, name: str, view: list[Any] | None) -> dict[str, Any]:
    description: dict[str, Any] = {"name": name}
    if view is not None:
        description["view"] = view
    if tensor.device.type != "cpu":
        description["device"] = str(tensor.device)
    if tensor.requires_grad:
        description["requires_grad"] = True
    if isinstance(tensor, (Parameter, Buffer)):
        description["class"] = type(tensor).__name__
    if isinstance(tensor, Buffer) and not tensor.persistent:
        description["persistent"] = False
    return description


def _checksum(tensor: Tensor, memory: memoryview) -> int:
    kind = f"{container.dtype_name(tensor.dtype)}{list(tensor.shape)}"
    return zlib.crc32(memory, zlib.crc32(kind.encode()))


def _replace_file(path: str, write: Callable[[BinaryIO], None]) -> None:
    """Write a file beside `path`, and when all of it is on disk put it in the place of `path`."""
    path = os.path.realpath(path)  # through a link, what it points to is replaced, not the link
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:  # a device or a pipe cannot be replaced; a directory is refused here
            write(file)
        return
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, stat.S_IMODE(mode))
            write(file)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)  # the new name, too, must survive a power cut
    finally:
        os.close(directory)


# Loading ----------------------------------------------------------------------------------------------------


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what :func:`save` wrote; of any other safetensors file, a dict from names to tensors.

    Args:
        f: a path, or an open binary file.
        map_location: where tensors go: a device, a dictionary from saved to wanted devices, or a function of
            a tensor on the CPU and the name of its saved device, which returns the tensor to use or None. By
            default, where they were when they were saved.
        weights_only, mmap, pickle_module, pickle_load_args: accepted for compatibility. A checkpoint holds nothing but
            data in any case.

    Raises:
        CheckpointError: the file is no checkpoint, is truncated, or was altered.
        OSError: it cannot be opened or read.
    """
    if not hasattr(f, "read"):
        path = os.fspath(f)
        return _load(path, path, map_location)
    # The header's reader wants a path: give the data one, in memory.
    descriptor = os.memfd_create("checkpoint")
    with open(descriptor, "w+b") as file:
        shutil.copyfileobj(f, file)  # type: ignore[arg-type]
        file.flush()
        return _load(f"/proc/self/fd/{descriptor}", str(getattr(f, "name", "<file>")), map_location)


def _load(path: str, shown: str, map_location: Any) -> Any:
    try:
        metadata, entries, begin = container.read_header(path)
        with open(path, "rb") as file:
            tensors = container.read_tensors(file, entries, begin)
            if _KEY not in metadata and f"{_KEY}.crc32" not in metadata:  # another program's
                return {entry.name: _place(tensor, "cpu", map_location) for entry, tensor, _ in tensors}
            document = _read_document(metadata)
            stored = {}
            for entry, tensor, memory in tensors:
                if document["crc32"].get(entry.name) != _checksum(tensor, memory):
                    raise container.FormatError(
                        f"tensor {entry.name!r} was altered: its checksum does not fit"
                    )
                stored[entry.name] = tensor
        return decode(document["root"], _Restorer(document["tensors"], stored, map_location))
    except (container.FormatError, StructureError) as error:
        raise CheckpointError(shown, str(error)) from None
    except RecursionError:
        raise CheckpointError(shown, "the description of its structure is nested too deeply") from None


def _read_document(metadata: dict[str, str]) -> dict[str, Any]:
    text = metadata.get(_KEY, "")
    try:
        intact = metadata.get(f"{_KEY}.crc32") == str(zlib.crc32(text.encode()))
        document = json.loads(text) if intact else None
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise container.FormatError("the description of its structure was altered: its checksum does not fit")
    if document.get("version") != _VERSION:
        raise container.FormatError(
            f"it was written in version {document.get('version')} of the format, this one reads {_VERSION}\n"
            "hint: upgrade rushlight-nn"
        )
    descriptions: Any = document.get("tensors")
    checksums = document.get("crc32")
    complete = "root" in document and isinstance(checksums, dict) and isinstance(descriptions, list)
    if not complete or not all(isinstance(d, dict) and isinstance(d.get("name"), str) for d in descriptions):
        raise container.FormatError("the description of its structure is incomplete")
    return document


class _Restorer:
    """Makes the tensors of a structure, by number, from what is stored."""

    def __init__(
        self, descriptions: list[dict[str, Any]], stored: dict[str, Tensor], map_location: Any
    ) -> None:
        self.descriptions = descriptions
        self.stored = stored
        self.map_location = map_location
        self.placed: dict[tuple[str, str], Tensor] = {}
        self.made: dict[int, Tensor] = {}

    def __call__(self, number: Any) -> Tensor:
        """The tensor of this number; the same object whenever it is asked for."""
        if type(number) is not int or not 0 <= number < len(self.descriptions):
            raise container.FormatError(f"there is no tensor number {number!r}")
        if number not in self.made:
            self.made[number] = self._make(self.descriptions[number])
        return self.made[number]

    def _make(self, description: dict[str, Any]) -> Tensor:
        name, device = description["name"], description.get("device", "cpu")
        if name not in self.stored:
            raise container.FormatError(f"tensor {name!r} is missing")
        # Views share memory on the device where they end up, so the whole is moved once for all of them.
        if (name, device) not in self.placed:
            self.placed[name, device] = _place(self.stored[name], device, self.map_location)
        tensor = self.placed[name, device]
        if "view" in description:
            tensor = sharing.view_of(tensor, description["view"])
        if description.get("class") == "Parameter":
            return Parameter(tensor, requires_grad=description.get("requires_grad", False))
        if description.get("class") == "Buffer":
            tensor = Buffer(tensor, persistent=description.get("persistent", True))
        return tensor.requires_grad_() if description.get("requires_grad") else tensor


def _place(tensor: Tensor, device: str, map_location: Any) -> Tensor:
    """`tensor`, which was saved from `device`, where `map_location` wants it."""
    if isinstance(map_location, dict):
        target: Any = map_location.get(device, device)
    elif callable(map_location) and not isinstance(map_location, core.device):
        result = map_location(tensor, device)
        if result is not None:
            return result
        target = device
    else:
        target = device if map_location is None else map_location
    if isinstance(target, int):
        target = f"cuda:{target}"
    target = core.device(target)
    if target.type == "cpu":
        return tensor
    try:
        return tensor.to(target)
    except (RuntimeError, AssertionError) as error:
        raise RuntimeError(
            f"load: a tensor belongs on the device {str(target)!r}, which is not available ({error})\n"
            "hint: map_location='cpu'"
        ) from error


__all__ = ["CheckpointError", "load", "save"]
