"""Represent arguments and results as JSON.

The structure of containers is preserved, tensors are replaced by indices in a list of tensors, and other
objects are stored by value.
"""

from __future__ import annotations

import json
from collections import OrderedDict, namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor, pytree

_LITERALS = (bool, int, float, str, type(None))
_SEQUENCES: dict[str, Any] = {"tuple": tuple, "list": list, "size": core.Size}
_MAPPINGS: dict[str, Any] = {"dict": dict, "ordered": OrderedDict}
#: The classes of named tuples that this process has flattened, by their names and fields. A file contains only names: no
#: module is imported because of a file.
_named_tuples: dict[tuple[str, ...], Any] = {}


class Flattening:
    """Converts arguments and results to structures for JSON, and collects their tensors in `tensors`.

    A structure contains the index in `tensors` of each tensor. A tensor that occurs several times has one
    index.

    Raises TypeError, with a message that begins with `what`, for an object that is neither a container, a tensor nor
    a literal.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._numbers: dict[int, int] = {}
        #: The tensors so far, with their paths: "x", "x.0", "state.hidden".
        self.tensors: list[tuple[str, Tensor]] = []

    def structure(self, value: Any, path: str) -> Any:
        """Return a structure of `value` that JSON can represent, with indices in place of tensors."""
        if isinstance(value, Tensor):
            if id(value) not in self._numbers:
                self._numbers[id(value)] = len(self.tensors)
                self.tensors.append((path, value))
            return {"tensor": self._numbers[id(value)]}
        if type(value) in _LITERALS:
            return {"value": value}
        if isinstance(value, core.dtype):
            return {"dtype": str(value)}
        for kind, container in _SEQUENCES.items():
            if type(value) is container:
                return {kind: [self.structure(part, f"{path}.{i}") for i, part in enumerate(value)]}
        for kind, container in _MAPPINGS.items():
            if type(value) is container:
                if not all(type(key) in _LITERALS for key in value):
                    raise TypeError(f"{self._what}: the keys of {path} must be strings, numbers or None")
                return {kind: [[key, self.structure(part, f"{path}.{key}")] for key, part in value.items()]}
        if type(value) in pytree._IN_FILES:
            children, name, context = node_of(value)
            if not _is_json(context):
                raise TypeError(
                    f"{self._what}: the context of {path} of type {type(value).__name__} cannot be represented in JSON\n"
                    "hint: pass to_dumpable_context and from_dumpable_context to register_pytree_node"
                )
            parts = [self.structure(part, f"{path}.{i}") for i, part in enumerate(children)]
            return {"node": [name, context, parts]}
        fields = fields_of(value)
        if fields is not None:
            name = type(value).__name__
            _named_tuples[name, *fields] = type(value)
            parts = [
                [field, self.structure(part, f"{path}.{field}")]
                for field, part in zip(fields, value, strict=True)
            ]
            return {"named": [name, parts]}
        raise TypeError(
            f"{self._what}: {path} is of type {type(value).__name__}, which a program cannot hold\n"
            "hint: use tensors, numbers, strings, dtypes and None, in tuples, lists, dicts and classes that were registered "
            "by export.register_dataclass or utils._pytree.register_pytree_node"
        )

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str] = ()) -> Any:
        """Return the structure of a call's arguments. `names` are the names of the first positional arguments."""
        positional = [
            self.structure(value, names[i] if i < len(names) else f"args.{i}") for i, value in enumerate(args)
        ]
        named = [[name, self.structure(value, name)] for name, value in kwargs.items()]
        return {"list": [{"list": positional}, {"dict": named}]}


def node_of(value: Any) -> tuple[list[Any], str, Any]:
    """Return the children and the context of an object of a registered class, and the name of the class.

    The name is the one that files contain, and the context is converted to a value for JSON."""
    children, context = pytree.SUPPORTED_NODES[type(value)].flatten_fn(value)
    name, to_json, _ = pytree._IN_FILES[type(value)]
    return list(children), name, to_json(context)


def named_parts(value: Any) -> dict[Any, Any]:
    """Return the parts of an object of a registered class by their names, keys or positions."""
    found = pytree.tree_flatten_with_path(value, is_leaf=lambda part: part is not value)[0]
    return {_name_of(path[0]): part for path, part in found}


def _name_of(key: Any) -> Any:
    known = (getattr(key, name) for name in ("name", "key", "idx") if hasattr(key, name))
    return next(known, str(key))


def with_parts(value: Any, parts: Sequence[Any]) -> Any:
    """Return a copy of an object of a registered class, with the given parts in place of its parts."""
    kind = pytree.SUPPORTED_NODES[type(value)]
    return kind.unflatten_fn(parts, kind.flatten_fn(value)[1])


def _made(name: str, context: Any, parts: Sequence[Any]) -> Any:
    # A notebook may define a class of the same name again.
    for kind, (known, _, from_json) in reversed(pytree._IN_FILES.items()):
        if known == name:
            return pytree.SUPPORTED_NODES[kind].unflatten_fn(parts, from_json(context))
    raise ValueError(
        f"program: the class '{name}' is not registered\n"
        "hint: call export.register_dataclass or utils._pytree.register_pytree_node before the program runs"
    )


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def fields_of(value: Any) -> tuple[str, ...] | None:
    """Return the names of the fields of a named tuple or of an operator's results, and None for other objects."""
    if not isinstance(value, tuple):
        return None
    fields = getattr(value, "_fields", None)
    if fields is None and hasattr(value, "n_sequence_fields"):
        fields = type(value).__match_args__  # type: ignore[attr-defined]
    return fields


def named_tuple(made: Any, parts: Sequence[Any]) -> Any:
    """Return a named tuple of the class `made`, such as `torch.return_types.max`, with the fields `parts`."""
    return made._make(parts) if hasattr(made, "_make") else made(parts)


def matches(structure: Any, value: Any, tensors: dict[int, Tensor]) -> bool:
    """Return whether `value` has this structure, and store the tensor with index i in `tensors[i]`.

    Numbers, strings and None must have the same type and value as in the structure. The keys of a plain dict
    may be in another order. The same tensor may have two indices, but two tensors must not have the same
    index.
    """
    kind, content = _node(structure)
    if kind == "tensor":
        return isinstance(value, Tensor) and tensors.setdefault(content, value) is value
    if kind == "value":
        # The texts differ for 0.0 and -0.0, and are equal for NaN.
        return type(value) is type(content) and repr(value) == repr(content)
    if kind == "dtype":
        return isinstance(value, core.dtype) and str(value) == content
    if kind == "node":
        name, context, parts = content
        if type(value) not in pytree._IN_FILES:
            return False
        value, *described = node_of(value)
        if described != [name, context] or len(value) != len(parts):
            return False
    elif kind == "named":
        name, pairs = content
        parts = [part for _, part in pairs]
        if type(value).__name__ != name or fields_of(value) != tuple(field for field, _ in pairs):
            return False
    elif kind in _SEQUENCES:
        parts = content
        if type(value) is not _SEQUENCES[kind] or len(value) != len(parts):
            return False
    else:
        keys = [repr(key) for key, _ in content]
        parts = [part for _, part in content]
        if type(value) is not _MAPPINGS[kind]:
            return False
        given = {repr(key): part for key, part in value.items()}
        if list(given) != keys and (kind == "ordered" or sorted(given) != sorted(keys)):
            return False
        value = [given[key] for key in keys]
    return all(matches(part, one, tensors) for part, one in zip(parts, value, strict=True))


def check(what: str, structure: Any, count: int) -> None:
    """Raise ValueError, with a message that names `what`, unless `structure` describes a tree of at most `count` tensors.

    Structures come from files, which may be damaged.
    """
    try:
        _check(structure, count)
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"program: the structure of the {what} is invalid: {error}") from None


def _check(structure: Any, count: int) -> None:
    kind, content = _node(structure)
    valid, parts = True, []
    if kind == "tensor":
        valid = type(content) is int and 0 <= content < count
    elif kind == "value":
        valid = type(content) in _LITERALS
    elif kind == "dtype":
        valid = type(content) is str
    elif kind == "node":
        name, _, parts = content
        valid = type(name) is str
    elif kind in _SEQUENCES:
        parts = content
    else:
        _, pairs = content if kind == "named" else ("", content)
        valid = all(type(key) in _LITERALS for key, _ in pairs)
        parts = [part for _, part in pairs]
    if not valid:
        raise ValueError(f"{kind} {content!r} is not possible for {count} tensors")
    for part in parts:
        _check(part, count)


def unflatten(structure: Any, tensors: list[Tensor]) -> Any:
    """Return the tree that a structure describes, with the tensor `tensors[i]` in place of index i."""
    kind, content = _node(structure)
    if kind == "tensor":
        return tensors[content]
    if kind == "value":
        return content
    if kind == "dtype":
        found = getattr(core, content.removeprefix("torch."), None)
        if not isinstance(found, core.dtype):
            raise ValueError(f"program: {content!r} is not a dtype")
        return found
    if kind == "node":
        name, context, parts = content
        return _made(name, context, [unflatten(part, tensors) for part in parts])
    if kind in _SEQUENCES:
        return _SEQUENCES[kind]([unflatten(part, tensors) for part in content])
    if kind == "named":
        name, pairs = content
        fields = [field for field, _ in pairs]
        made = _named_tuples.get((name, *fields)) or namedtuple(name, fields)
        return named_tuple(made, [unflatten(part, tensors) for _, part in pairs])
    return _MAPPINGS[kind]([(key, unflatten(part, tensors)) for key, part in content])


def separated(structure: Any) -> tuple[Any, list[int]]:
    """Number the occurrences of tensors in a structure: a tensor that occurs twice gets two indices.

    Return the structure with the new indices, and a list that contains the previous index at each new index.
    """
    order: list[int] = []

    def walk(structure: Any) -> Any:
        kind, content = _node(structure)
        if kind == "tensor":
            order.append(content)
            return {kind: len(order) - 1}
        if kind in ("value", "dtype"):
            return structure
        if kind == "node":
            name, context, parts = content
            return {kind: [name, context, [walk(part) for part in parts]]}
        if kind in _SEQUENCES:
            return {kind: [walk(part) for part in content]}
        if kind == "named":
            return {kind: [content[0], [[field, walk(part)] for field, part in content[1]]]}
        return {kind: [[key, walk(part)] for key, part in content]}

    return walk(structure), order


def shown(structure: Any, numbers: bool = False) -> str:
    """Return a structure as text. If `numbers` is true, the text contains the index of each tensor."""
    kind, content = _node(structure)
    if kind == "tensor":
        return f"tensor {content}" if numbers else "tensor"
    if kind == "value":
        return repr(content)
    if kind == "dtype":
        return str(content)
    if kind in _SEQUENCES:
        parts = ", ".join(shown(part, numbers) for part in content)
        if kind == "list":
            return f"[{parts}]"
        return f"({parts}{',' * (len(content) == 1)})" if kind == "tuple" else f"Size([{parts}])"
    if kind == "node":
        name, context, parts = content
        return f"{name}({context}, [{', '.join(shown(part, numbers) for part in parts)}])"
    if kind == "named":
        name, pairs = content
        return f"{name}({', '.join(f'{field}={shown(part, numbers)}' for field, part in pairs)})"
    text = f"{{{', '.join(f'{key}: {shown(part, numbers)}' for key, part in content)}}}"
    return text if kind == "dict" else f"OrderedDict({text})"


def _node(structure: Any) -> tuple[str, Any]:
    ((kind, content),) = structure.items()
    if kind not in ("tensor", "value", "dtype", "named", "node", *_SEQUENCES, *_MAPPINGS):
        raise ValueError(f"{kind!r} is not a container that this version supports")
    return kind, content
