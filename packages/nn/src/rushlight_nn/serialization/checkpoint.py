"""Read and write checkpoints: any structure of data in a safetensors file that other programs can read.

Tensors are named by their paths, such as `model.conv1.weight`. The rest of the structure and a checksum of every tensor are
stored as JSON in the metadata of the file. A tensor that has several names is stored once for each name, so that every
reader finds it. After loading, the names refer to a single tensor again.
"""

from __future__ import annotations

import json

import rushlight_core as core
from rushlight_core import Tensor

from ..parameter import Buffer, Parameter
from . import container, sharing
from .devices import map_to_device
from .errors import Budget, FormatError
from .source import Source, crc32
from .structure import Encoder, StructureError, decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

_KEY = "rushlight"
_VERSION = 1


class Layout:
    """The stored form of an object: a dictionary `tensors` of named tensors, and a description of the rest of the structure.

    Raises:
        TypeError: `obj` contains a value of a type that cannot be saved; the message gives the path of the value.
        ValueError: the object contains itself, or is nested too deeply.
    """

    def __init__(self, obj: Any) -> None:
        encoder = Encoder()
        try:
            self.root: Any = encoder.encode(obj)
        except RecursionError:
            raise ValueError("save: the object is nested too deeply") from None
        self.tensors: dict[str, Tensor] = {}
        self.copies: dict[str, str] = {}
        self.descriptions: list[dict[str, Any]] = [{} for _ in encoder.tensors]
        taken: set[str] = {
            "__metadata__",
            *encoder.paths,
            *(name for all in encoder.all_names for name in all),
        }
        for stored in sharing.gather(encoder.tensors, encoder.paths):
            data = stored.data
            all_of_it = [list(data.shape), container.contiguous(list(data.shape)), 0]
            whole = sorted(n for n, view in stored.members.items() if view is None or view == all_of_it)
            # Other programs read the tensor by this name. Prefer a name of the whole tensor to a name of a view.
            names = [name for number in whole for name in encoder.all_names[number]]
            wanted = (names or [encoder.paths[whole[0] if whole else min(stored.members)]])[0]
            name = wanted if wanted not in self.tensors and wanted != "__metadata__" else _free(wanted, taken)
            taken.add(name)
            pairs = data.dtype == core.complex128  # the format has no complex128
            self.tensors[name] = core.view_as_real(data) if pairs else data
            for number, view in stored.members.items():
                self.descriptions[number] = _describe(encoder.tensors[number], name, view)
            for other in names:
                if other not in self.tensors and other != "__metadata__":
                    self.tensors[other] = self.tensors[name]
                    self.copies[other] = name

    def checksums(self) -> dict[str, int]:
        """Return a dictionary from the names of all tensors to their checksums."""
        done: dict[int, int] = {}
        for tensor in self.tensors.values():
            if id(tensor) not in done:
                done[id(tensor)] = container.checksum(tensor)
        return {name: done[id(tensor)] for name, tensor in self.tensors.items()}

    def document(self, checksums: dict[str, int]) -> str:
        """Return the description of the structure, with the checksums of the tensors, as JSON text."""
        found = {"version": _VERSION, "root": self.root, "tensors": self.descriptions, "crc32": checksums}
        if self.copies:
            found["copies"] = self.copies
        return json.dumps(found, separators=(",", ":"), allow_nan=False)


def _free(path: str, taken: set[str]) -> str:
    name, count = path, 1
    while name in taken:
        count += 1
        name = f"{path}#{count}"
    return name


def _describe(tensor: Tensor, name: str, view: list[Any] | None) -> dict[str, Any]:
    description: dict[str, Any] = {"name": name}
    if view is not None:
        description["view"] = view
    if tensor.dtype == core.complex128:
        description["pairs"] = True
    if tensor.device.type != "cpu":
        description["device"] = str(tensor.device)
    if tensor.requires_grad:
        description["requires_grad"] = True
    if isinstance(tensor, (Parameter, Buffer)):
        description["class"] = type(tensor).__name__
    if isinstance(tensor, Buffer) and not tensor.persistent:
        description["persistent"] = False
    return description


def write(obj: Any, file: BinaryIO) -> None:
    """Write `obj` to `file`."""
    layout = Layout(obj)
    container.write(file, layout.tensors, metadata_of(layout.document(layout.checksums())))


def metadata_of(document: str) -> dict[str, str]:
    """Return the metadata of a file whose structure `document` describes. Some readers require the key "format"."""
    return {"format": "pt", _KEY: document, f"{_KEY}.crc32": str(crc32(document.encode()))}


# Reading ----------------------------------------------------------------------------------------------------


def read(source: Source, map_location: Any, verify: bool | None, budget: Budget) -> Any:
    """Return the object in a safetensors file, or a dictionary of tensors if another program wrote the file.

    Args:
        source: the file.
        map_location: the device of the tensors, as for :func:`load`.
        verify: whether to check the bytes of the tensors against their checksums. If `verify` is None, the
            bytes are checked unless the file is memory-mapped.
        budget: the memory that may be used.

    Raises:
        FormatError: the file is damaged.
    """
    metadata, entries = container.read_header(source, budget)
    if not is_described(metadata):
        if verify:
            raise FormatError("verify=True needs checksums, but the file has none; another program wrote it")
        found = {}
        for entry in entries:
            tensor, _ = container.read_tensor(source, entry, False)
            found[entry.name] = map_to_device(tensor, "cpu", map_location)
        return found
    document = read_document(metadata, budget)
    stored = read_stored(source, entries, document, verify)
    return restore(document, stored, map_location)


def is_described(metadata: dict[str, str]) -> bool:
    """Return whether this library wrote the file."""
    return _KEY in metadata or f"{_KEY}.crc32" in metadata


def read_stored(
    source: Source, entries: list[container.Entry], document: dict[str, Any], verify: bool | None
) -> dict[str, Tensor]:
    """Return a dictionary from names to the tensors of a file, with one name for each tensor.

    Raises:
        FormatError: the bytes of a tensor do not match its checksum.
    """
    checked = verify if verify is not None else source.mapping is None
    stored: dict[str, Tensor] = {}
    for entry in entries:
        start = crc32(entry.kind)
        if entry.name in document["copies"]:
            crc = source.checksum(entry.begin, entry.size, start) if checked else 0
        else:
            stored[entry.name], crc = container.read_tensor(source, entry, checked, start)
        if checked and document["crc32"].get(entry.name) != crc:
            raise FormatError(
                f"the checksum of tensor {entry.name!r:.80} does not match: the file is damaged"
            )
    return stored


def restore(document: dict[str, Any], stored: dict[str, Tensor], map_location: Any) -> Any:
    """Return the object whose structure `document` describes, with the tensors `stored`.

    Raises:
        FormatError: the description is not valid.
    """
    try:
        return decode(document["root"], _Restorer(document["tensors"], stored, map_location))
    except StructureError as error:
        raise FormatError(str(error)) from None
    except RecursionError:
        raise FormatError("the description of the file's structure is nested too deeply") from None


def read_document(metadata: dict[str, Any], budget: Budget) -> dict[str, Any]:
    """Return the description of the file's structure, which the metadata contain as JSON.

    Raises:
        FormatError: the description is damaged or incomplete, or the version of the format is not supported.
    """
    text = metadata.pop(_KEY, "")  # removed from the dictionary, so that it is freed once it is parsed
    if metadata.get("format", "pt") != "pt" or set(metadata) - {
        "format",
        "total_size",
        f"{_KEY}.crc32",
    }:
        raise FormatError(
            "the metadata of the file have entries that save() does not write: the file is damaged"
        )
    if not isinstance(text, str) or metadata.get(f"{_KEY}.crc32") != str(
        crc32(text.encode("utf-8", "replace"))
    ):
        raise FormatError(
            "the checksum of the description of the file's structure does not match: the file is damaged"
        )
    document = container.parse_json(text, budget)
    del text
    if document.get("version") != _VERSION:
        raise FormatError(
            f"the file has version {document.get('version')} of the format, needs {_VERSION}\n"
            "hint: upgrade rushlight-nn"
        )
    descriptions: Any = document.get("tensors")
    document.setdefault("copies", {})
    tables = (document.get("crc32"), document["copies"])
    complete = (
        "root" in document and isinstance(descriptions, list) and all(isinstance(t, dict) for t in tables)
    )
    if not complete or not all(isinstance(d, dict) and isinstance(d.get("name"), str) for d in descriptions):
        raise FormatError("the description of the file's structure is incomplete")
    return document


class _Restorer:
    """A function from a number in the structure to the tensor that it stands for.

    A tensor is created when the function is first called with its number.
    """

    def __init__(
        self, descriptions: list[dict[str, Any]], stored: dict[str, Tensor], map_location: Any
    ) -> None:
        self.descriptions = descriptions
        self.stored = stored
        self.map_location = map_location
        self.on_device: dict[tuple[str, str], Tensor] = {}
        self.made: dict[int, Tensor] = {}

    def __call__(self, number: Any) -> Tensor:
        """Return tensor `number` of the structure. Repeated calls return the same object."""
        if type(number) is not int or not 0 <= number < len(self.descriptions):
            raise FormatError(f"there is no tensor number {number!r:.40}")
        if number not in self.made:
            self.made[number] = self._make(self.descriptions[number])
        return self.made[number]

    def _make(self, description: dict[str, Any]) -> Tensor:
        name, device = description["name"], description.get("device", "cpu")
        if name not in self.stored:
            raise FormatError(f"tensor {name!r:.80} is missing")
        if not isinstance(device, str):
            raise FormatError("the device of a tensor must be a string")
        # Move the whole tensor to the device once, so that its views share memory there.
        if (name, device) not in self.on_device:
            self.on_device[name, device] = map_to_device(self.stored[name], device, self.map_location)
        tensor = self.on_device[name, device]
        if description.get("pairs"):
            tensor = _complex(tensor)
        if "view" in description:
            tensor = sharing.view_of(tensor, description["view"])
        grad = bool(description.get("requires_grad"))
        if grad and not (tensor.is_floating_point() or tensor.is_complex()):
            raise FormatError(
                f"tensor {name!r:.80} of dtype {tensor.dtype} has requires_grad=True, but only floating-point and "
                "complex tensors can require gradients: the file is damaged"
            )
        if description.get("class") == "Parameter":
            return Parameter(tensor, requires_grad=grad)
        if description.get("class") == "Buffer":
            tensor = Buffer(tensor, persistent=bool(description.get("persistent", True)))
        return tensor.requires_grad_() if grad else tensor


def _complex(pairs: Tensor) -> Tensor:
    if pairs.dtype != core.float64 or pairs.dim() == 0 or pairs.shape[-1] != 2:
        raise FormatError(
            "a complex128 tensor must be stored as a float64 tensor whose last dimension has size 2"
        )
    shape = list(pairs.shape[:-1])
    offset = pairs.storage_offset() // 2
    return core._C._tensor_over(
        pairs.untyped_storage(), core.complex128, shape, container.contiguous(shape), offset
    )
