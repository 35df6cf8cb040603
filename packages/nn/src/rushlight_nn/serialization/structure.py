"""Convert nested containers to JSON and back. Tensors are stored separately, and JSON refers to them by number.

Plain values, lists, and dictionaries with strings as keys are written as the corresponding JSON values. Every
other value is written as a JSON object whose key "!" contains the value's type: a type of container, or one
of the types in :mod:`values`.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ..parameter import Buffer, Parameter
from . import trust, values
from .errors import FormatError
from .keys import Keys

_TAG = "!"
# Ints with more bits are written in hexadecimal. Python always converts hexadecimal numbers, but may refuse decimal numbers
# of more than 640 digits, depending on `sys.set_int_max_str_digits`.
_DECIMAL_BITS = 2048
_NODES = (list, dict)  # other JSON values represent themselves
_DICTIONARIES = {kind.__name__: kind for kind in (dict, OrderedDict, defaultdict, Counter)}
_SEQUENCES = {kind.__name__: kind for kind in (tuple, set, frozenset, core.Size)}


class Encoder:
    """Converts a value to JSON, and collects the tensors in it; each tensor is collected only once."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.paths: list[str] = []  # the first path of each tensor, as keys joined by dots
        self.all_names: list[list[str]] = []  # for each tensor, the paths that end in a key of a dictionary
        self._numbers: dict[int, int] = {}
        self._open: set[int] = set()  # containers being encoded

    def encode(self, value: Any, path: str = "", named: bool = False) -> Any:
        """Convert `value` to an object that `json.dumps` accepts.

        Args:
            value: the value to convert.
            path: the path of the value in the whole structure.
            named: whether `path` ends in a key of a dictionary.

        Raises:
            TypeError: `value` contains an object that is neither data nor a container of data.
            ValueError: a container contains itself.
        """
        kind = type(value)
        if kind is int and value.bit_length() > _DECIMAL_BITS:
            return {_TAG: "int", "value": hex(value)}
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {_TAG: "float", "value": repr(value)}
        if isinstance(value, Tensor) and core._C._sparse_parts(value) is not None:
            return self._encode_sparse(value, path)
        if isinstance(value, Tensor):
            return {_TAG: "tensor", "number": self._number(value, path, named)}
        numpy = sys.modules.get("numpy")
        if (
            numpy is not None
            and isinstance(value, (numpy.ndarray, numpy.generic))
            and value.dtype.kind in "biufc"
        ):
            return self._encode_array(numpy, value, path)
        if kind is list or kind in _SEQUENCES.values() or kind in _DICTIONARIES.values():
            return self._encode_container(value, kind, path)
        found = values.encode(value)
        if found is None:
            raise refusal(value, path or "the object")
        tag, parts = found
        return {_TAG: tag, **{name: self.encode(part, _join(path, name)) for name, part in parts.items()}}

    def _encode_sparse(self, value: Tensor, path: str) -> Any:
        if type(value) is not Tensor:
            raise refusal(value, path or "the object")
        of_value = core._C._sparse_parts(value)
        assert of_value is not None  # the caller has checked the layout
        layout, *parts, coalesced = of_value
        names = ("indices", "columns", "values")
        found = {name: self.encode(part, _join(path, name)) for name, part in zip(names, parts, strict=True)}
        about = {"layout": layout, "size": list(value.shape), "coalesced": coalesced}
        return {_TAG: "sparse", **about, "requires_grad": value.requires_grad, **found}

    def _encode_array(self, numpy: Any, value: Any, path: str) -> Any:
        copy = numpy.array(value, dtype=value.dtype.newbyteorder("="), order="C")
        kind = "ndarray" if isinstance(value, numpy.ndarray) else "scalar"
        return {_TAG: kind, "number": self._number(core.from_numpy(copy), path, False)}

    def _encode_container(self, value: Any, kind: Any, path: str) -> Any:
        if id(value) in self._open:
            raise ValueError(f"save: {path or 'the object'} contains itself")
        self._open.add(id(value))
        try:
            if kind in _DICTIONARIES.values():
                return self._encode_dict(value, kind, path)
            items = [self.encode(item, _join(path, i)) for i, item in enumerate(value)]
            return items if kind is list else {_TAG: kind.__name__, "items": items}
        finally:
            self._open.discard(id(value))

    def _encode_dict(self, value: Any, kind: Any, path: str) -> Any:
        items: Any
        if all(type(key) is str for key in value) and _TAG not in value:
            items = {key: self.encode(item, _join(path, key), named=True) for key, item in value.items()}
            if kind is dict:
                return items
        else:
            items = [
                [self.encode(k, _join(path, "key")), self.encode(v, _join(path, k))] for k, v in value.items()
            ]
        node = {_TAG: kind.__name__, "items": items}
        if kind is defaultdict:
            node["factory"] = values.name_of_factory(value.default_factory, path or "the object")
        # The state of a module has the versions of its parts in this attribute.
        metadata = getattr(value, "_metadata", None)
        if metadata is not None:
            node["_metadata"] = self.encode(metadata, _join(path, "_metadata"))
        return node

    def _number(self, tensor: Tensor, path: str, named: bool) -> int:
        if type(tensor) not in (Tensor, Parameter, Buffer):
            raise TypeError(
                f"save: cannot save {path or 'the tensor'}: its class {type(tensor).__qualname__} is a tensor subclass, "
                "which safetensors files cannot contain\nhint: save a plain tensor, tensor.as_subclass(torch.Tensor)"
            )
        number = self._numbers.get(id(tensor))
        if number is None:
            number = self._numbers[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
            self.paths.append(path or "tensor")
            self.all_names.append([])
        if named:
            self.all_names[number].append(path)
        return number


def _join(path: str, key: Any) -> str:
    try:
        name = str(key)
    except ValueError:  # the key has an int with too many digits
        name = "key"
    return f"{path}.{name}" if path else name


def refusal(value: Any, path: str) -> TypeError:
    """Return the TypeError for `value`, whose class cannot be saved."""
    kind = type(value)
    return TypeError(
        f"save: {path} is a {kind.__module__}.{kind.__qualname__}, which is not data\nhint: {_hint(value)}"
    )


def _hint(value: Any) -> str:
    if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
        return (
            "save its state by save(model.state_dict(), path), and load it into a new model by "
            "model.load_state_dict(load(path))"
        )
    if isinstance(value, dict):
        return "save dict(value)"
    if isinstance(value, (int, float, str)) or (hasattr(value, "item") and not hasattr(value, "__len__")):
        return "save a plain int, float or str"
    if hasattr(value, "__array__"):
        return "save from_numpy(value)"
    return (
        "save its parts: None, bool, int, float, str, tensors, and lists, tuples and dictionaries "
        "of these (checkpoints hold no code, so that opening one is safe)"
    )


class StructureError(Exception):
    """The error for a description that :class:`Encoder` cannot have written."""


def decode(node: Any, tensor: Callable[[int], Tensor]) -> Any:
    """Return the value that was encoded as `node`. `node` is changed in place. `tensor(n)` returns tensor number n.

    Raises:
        StructureError: `node` does not have the form that :class:`Encoder` writes.
    """
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if isinstance(node, list):  # change the list in place, because a copy would need as much memory again
        for i, item in enumerate(node):
            if type(item) in _NODES:
                node[i] = decode(item, tensor)
        return node
    tag = node.get(_TAG)
    if tag is None:
        for key, item in node.items():
            if type(item) in _NODES:
                node[key] = decode(item, tensor)
        return node
    if tag == "tensor":
        return tensor(node.get("number"))
    if tag in ("ndarray", "scalar"):
        array = tensor(node.get("number")).detach().cpu().numpy()
        if tag == "scalar" and array.ndim:
            raise StructureError(
                f"a number must be stored as an array without dimensions, got {array.ndim} dimensions"
            )
        return array if tag == "ndarray" else array[()]
    if not isinstance(tag, str):
        raise StructureError(
            f"the key {_TAG!r} of a JSON object must have a string as its value, got {type(tag).__name__}"
        )
    if tag in _SEQUENCES:
        items = decode(node.get("items"), tensor)
        if tag in ("set", "frozenset") and isinstance(items, list):
            Keys(trust.is_allowed).check(items)
        return _make(tag, lambda: _SEQUENCES[tag](_checked(items, list)))
    if tag in _DICTIONARIES:
        return _decode_dict(node, tag, tensor)
    parts = {name: decode(part, tensor) for name, part in node.items() if name != _TAG}
    return _make(tag, lambda: values.decode(tag, parts))


def _make(tag: str, make: Callable[[], Any]) -> Any:
    """Return the result of `make`, and convert its errors to StructureError."""
    try:
        return make()
    except values.UnknownTag:
        raise StructureError(
            f"the file holds a {tag!r:.80}, which this version of rushlight-nn does not support"
        ) from None
    except (
        LookupError,
        TypeError,
        ValueError,
        RuntimeError,
        ArithmeticError,
        AttributeError,
        FormatError,
    ) as error:
        if isinstance(error, RecursionError):
            raise
        raise StructureError(
            f"the description of a {tag} cannot be read ({type(error).__name__}: {error})"
        ) from None


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"got {type(value).__name__}, needs {kind.__name__}")
    return value


def _decode_dict(node: Any, tag: str, tensor: Callable[[int], Tensor]) -> Any:
    items = node.get("items")
    kind: Any = _DICTIONARIES[tag]
    result = _make(
        tag, lambda: kind(values.factory_of(node.get("factory"))) if tag == "defaultdict" else kind()
    )
    if isinstance(items, dict):
        for key, value in items.items():
            result[key] = decode(value, tensor)
    elif isinstance(items, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in items):
        for pair in items:
            pair[0] = decode(pair[0], tensor)
        Keys(trust.is_allowed).check(pair[0] for pair in items)
        for i, (key, value) in enumerate(items):
            result[key] = decode(value, tensor)
            items[i] = None  # free the pair
    else:
        raise StructureError(f"the description of a {tag} cannot be read: it has no items")
    if "_metadata" in node and kind is OrderedDict:
        result._metadata = decode(node["_metadata"], tensor)
    return result
