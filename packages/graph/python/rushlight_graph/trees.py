"""Arguments and results as JSON: containers are kept, tensors are numbered, and other objects are stored by value."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from rushlight_core import Tensor


class Flattening:
    """Flattens trees. A tensor that occurs several times has one number.

    Raises TypeError, with a message that begins with `what`, for an object that is neither a container, a tensor nor
    a literal.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._numbers: dict[int, int] = {}
        #: The tensors so far, with their paths: "x", "x.0", "state.hidden".
        self.tensors: list[tuple[str, Tensor]] = []

    def structure(self, value: Any, path: str) -> Any:
        """Return the structure of `value`, with numbers in place of tensors, in a form that JSON can represent."""
        if isinstance(value, Tensor):
            if id(value) not in self._numbers:
                self._numbers[id(value)] = len(self.tensors)
                self.tensors.append((path, value))
            return {"tensor": self._numbers[id(value)]}
        if value is None or type(value) in (bool, int, float, str):
            return {"value": value}
        if type(value) in (tuple, list):
            parts = [self.structure(part, f"{path}.{i}") for i, part in enumerate(value)]
            return {type(value).__name__: parts}
        if type(value) in (dict, OrderedDict):
            if not all(isinstance(key, str) for key in value):
                raise TypeError(f"{self._what}: the keys of {path} must be strings")
            kind = "dict" if type(value) is dict else "ordered"
            return {kind: [[key, self.structure(part, f"{path}.{key}")] for key, part in value.items()]}
        raise TypeError(
            f"{self._what}: {path} is of type {type(value).__name__}, which a program cannot hold\n"
            "hint: use tensors, numbers, strings and None, in tuples, lists and dicts"
        )

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str] = ()) -> Any:
        """Return the structure of a call's arguments. `names` are the names of the first positional arguments."""
        positional = [
            self.structure(value, names[i] if i < len(names) else f"args.{i}") for i, value in enumerate(args)
        ]
        named = [[name, self.structure(value, name)] for name, value in kwargs.items()]
        return {"list": [{"list": positional}, {"dict": named}]}


def unflatten(structure: Any, tensors: list[Tensor]) -> Any:
    """Return the tree that a structure describes, with tensors in place of numbers."""
    ((kind, content),) = structure.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "value":
        return content
    if kind in ("tuple", "list"):
        parts = [unflatten(part, tensors) for part in content]
        return tuple(parts) if kind == "tuple" else parts
    if kind not in ("dict", "ordered"):
        raise ValueError(f"program: {kind!r} is not a container that this version supports")
    pairs = [(key, unflatten(part, tensors)) for key, part in content]
    return dict(pairs) if kind == "dict" else OrderedDict(pairs)
