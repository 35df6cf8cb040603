"""Nested containers as JSON, with the tensors in them taken out and put back.

Plain values, lists, and dictionaries with names as keys are themselves in JSON. Everything else is an object
whose key "!" says what it is.
"""

from __future__ import annotations

import math
import sys
from collections import OrderedDict
from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ..parameter import Buffer, Parameter

_TAG = "!"


class Encoder:
    """Turns a value into JSON and collects its tensors, each object once."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.paths: list[str] = []  # where each was met first, as keys joined by dots
        self._numbers: dict[int, int] = {}
        self._open: set[int] = set()  # containers being encoded

    def encode(self, value: Any, path: str = "") -> Any:
        """`value` as what `json.dumps` takes.

        Raises:
            TypeError: something in it is neither data nor a container of data.
            ValueError: a container contains itself.
        """
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {_TAG: "float", "value": repr(value)}
        if isinstance(value, Tensor):
            return {_TAG: "tensor", "number": self._number(value, path)}
        if kind is core.dtype or kind is core.device:
            return {
                _TAG: kind.__name__,
                "value": str(value).removeprefix("torch.").removeprefix("rushlight."),
            }
        numpy = sys.modules.get("numpy")
        if (
            numpy is not None
            and isinstance(value, (numpy.ndarray, numpy.generic))
            and value.dtype.kind in "biufc"
        ):
            return self._encode_array(numpy, value, path)
        if kind in (list, tuple, dict, OrderedDict, core.Size):
            return self._encode_container(value, kind, path)
        raise TypeError(
            f"save: {path or 'the object'} is a {kind.__module__}.{kind.__qualname__}, which is not data\n"
            f"hint: {_hint(value)}"
        )

    def _encode_array(self, numpy: Any, value: Any, path: str) -> Any:
        copy = numpy.array(value, dtype=value.dtype.newbyteorder("="), order="C")
        kind = "ndarray" if isinstance(value, numpy.ndarray) else "scalar"
        return {_TAG: kind, "number": self._number(core.from_numpy(copy), path)}

    def _encode_container(self, value: Any, kind: Any, path: str) -> Any:
        if id(value) in self._open:
            raise ValueError(f"save: {path or 'the object'} contains itself")
        self._open.add(id(value))
        try:
            if kind is dict or kind is OrderedDict:
                return self._encode_dict(value, kind, path)
            items = [self.encode(item, _join(path, i)) for i, item in enumerate(value)]
            return items if kind is list else {_TAG: kind.__name__, "items": items}
        finally:
            self._open.discard(id(value))

    def _encode_dict(self, value: Any, kind: Any, path: str) -> Any:
        items: Any
        if all(type(key) is str for key in value) and _TAG not in value:
            items = {key: self.encode(item, _join(path, key)) for key, item in value.items()}
            if kind is dict:
                return items
        else:
            items = [
                [self.encode(k, _join(path, "key")), self.encode(v, _join(path, k))] for k, v in value.items()
            ]
        node = {_TAG: kind.__name__, "items": items}
        # Modules keep the versions of their states in this attribute.
        metadata = getattr(value, "_metadata", None)
        if metadata is not None:
            node["_metadata"] = self.encode(metadata, _join(path, "_metadata"))
        return node

    def _number(self, tensor: Tensor, path: str) -> int:
        if type(tensor) not in (Tensor, Parameter, Buffer):
            raise TypeError(
                f"save: {path or 'the tensor'} is of the tensor subclass {type(tensor).__qualname__}\n"
                "hint: save a plain tensor, such as tensor.detach()"
            )
        number = self._numbers.get(id(tensor))
        if number is None:
            number = self._numbers[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
            self.paths.append(path or "tensor")
        return number


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _hint(value: Any) -> str:
    if hasattr(value, "state_dict"):
        return "save its state_dict()"
    if isinstance(value, dict):
        return "save dict(value)"
    if isinstance(value, (int, float, str)) or (hasattr(value, "item") and not hasattr(value, "__len__")):
        return "save a plain int, float or str"
    if hasattr(value, "__array__"):
        return "save from_numpy(value)"
    return (
        "save what it is made of: None, bool, int, float, str, tensors, and lists, tuples and dictionaries "
        "of these (checkpoints hold no code, so that opening one is safe)"
    )


class StructureError(Exception):
    """A description that no encoder wrote."""


def decode(node: Any, tensor: Callable[[int], Tensor]) -> Any:
    """The value that was encoded as `node`; `tensor` returns the tensor of a number.

    Raises:
        StructureError: `node` is not what :class:`Encoder` writes.
    """
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if isinstance(node, list):
        return [decode(item, tensor) for item in node]
    tag = node.get(_TAG)
    if tag is None:
        return {key: decode(value, tensor) for key, value in node.items()}
    if tag == "tensor":
        return tensor(node.get("number"))
    if tag in ("ndarray", "scalar"):
        array = tensor(node.get("number")).cpu().numpy()
        return array if tag == "ndarray" else array[()]
    try:
        if tag == "float":
            return float(node["value"])
        if tag == "dtype":
            return _decode_dtype(node["value"])
        if tag == "device":
            return core.device(node["value"])
        if tag in ("tuple", "Size"):
            return (tuple if tag == "tuple" else core.Size)([decode(item, tensor) for item in node["items"]])
        if tag in ("dict", "OrderedDict"):
            return _decode_dict(node, OrderedDict if tag == "OrderedDict" else dict, tensor)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise StructureError(
            f"the description of a {tag} cannot be read ({type(error).__name__}: {error})"
        ) from None
    raise StructureError(f"it holds a {tag!r}, which this version of rushlight-nn does not know")


def _decode_dict(node: Any, kind: Any, tensor: Callable[[int], Tensor]) -> Any:
    items = node["items"]
    pairs = (
        items.items() if isinstance(items, dict) else [(decode(key, tensor), value) for key, value in items]
    )
    result = kind((key, decode(value, tensor)) for key, value in pairs)
    if "_metadata" in node and kind is OrderedDict:
        result._metadata = decode(node["_metadata"], tensor)
    return result


def _decode_dtype(name: Any) -> Any:
    dtype = getattr(core, name)
    if not isinstance(dtype, core.dtype):
        raise ValueError(f"{name} is no dtype")
    return dtype
