"""Nested containers as trees: their leaves, and the structure of the containers.

Functions that are passed to `vmap` and `grad` may take and return nested containers. `register_pytree_node` registers a
class of containers for all functions on trees.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

PyTree = Any
Context = Any


@dataclass(frozen=True)
class SequenceKey:
    """The key of a part of a sequence. The attribute `idx` is the part's index.

    Example:
        >>> tree_flatten_with_path([5])[0]
        [((SequenceKey(idx=0),), 5)]
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the part of a container at this key."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """The key of a part of a mapping. The attribute `key` is the part's key in the mapping.

    Example:
        >>> tree_flatten_with_path({"a": 5})[0]
        [((MappingKey(key='a'),), 5)]
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the part of a container at this key."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The key of a part that is an attribute of an object; `name` is the name of that attribute.

    Example:
        >>> GetAttrKey("weight").name
        'weight'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the part of a container at this key."""
        return getattr(obj, self.name)


KeyPath = tuple[Any, ...]


class NodeDef(NamedTuple):
    """The functions that flatten and rebuild the containers of a class.

    Example:
        >>> NodeDef.__name__
        'NodeDef'
    """

    type: type[Any]
    flatten_fn: Callable[[Any], tuple[list[Any], Context]]
    unflatten_fn: Callable[[Iterable[Any], Context], Any]


def _list_flatten(d: list[Any]) -> tuple[list[Any], Context]:
    return d, None


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    return list(values)


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], Context]:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: Context) -> tuple[Any, ...]:
    return tuple(values)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], Context]:
    values, context = _dict_flatten(d)
    return [(MappingKey(key), value) for key, value in zip(context, values, strict=True)], context


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _ordereddict_unflatten(values: Iterable[Any], context: Context) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d: defaultdict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable[Any], context: Context) -> defaultdict[Any, Any]:
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return context(*values)


def _structseq_unflatten(values: Iterable[Any], context: Context) -> Any:
    return context(tuple(values))


def _deque_flatten(d: deque[Any]) -> tuple[list[Any], Context]:
    return list(d), d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Context) -> deque[Any]:
    return deque(values, maxlen=context)


_NAMEDTUPLE: Any = NamedTuple  # represents every class of named tuples


class structseq(tuple[Any, ...]):  # noqa: N801
    """The key in `SUPPORTED_NODES` for all classes of results with several tensors, such as the result of `max(dim)`."""


_STRUCTSEQ: Any = structseq
_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = {list, tuple, _NAMEDTUPLE, _STRUCTSEQ}

# Functions for classes whose children have keys other than the keys of a mapping or the indices of a sequence.
_WITH_KEYS: dict[Any, Callable[[Any], tuple[list[tuple[Any, Any]], Context]]] = {}

# The names of registered classes in files, and functions that convert a context to JSON and back.
_IN_FILES: dict[Any, tuple[str, Callable[[Context], Any], Callable[[Any], Context]]] = {}


def _unchanged(context: Any) -> Any:
    return context


SUPPORTED_NODES: dict[Any, NodeDef] = {
    kind: NodeDef(kind, take, make)
    for kind, take, make in (
        (list, _list_flatten, _list_unflatten),
        (tuple, _tuple_flatten, _tuple_unflatten),
        (dict, _dict_flatten, _dict_unflatten),
        (OrderedDict, _dict_flatten, _ordereddict_unflatten),
        (defaultdict, _defaultdict_flatten, _defaultdict_unflatten),
        (deque, _deque_flatten, _deque_unflatten),
        (_NAMEDTUPLE, _namedtuple_flatten, _namedtuple_unflatten),
        (_STRUCTSEQ, _namedtuple_flatten, _structseq_unflatten),
    )
}


def register_pytree_node(
    cls: type[Any],
    flatten_fn: Callable[[Any], tuple[list[Any], Context]],
    unflatten_fn: Callable[[Iterable[Any], Context], Any],
    *,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Context]] | None = None,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], Any] | None = None,
    from_dumpable_context: Callable[[Any], Context] | None = None,
    **options: Any,
) -> None:
    """Register a class of containers, with functions that flatten and rebuild its instances.

    Args:
        cls: the class.
        flatten_fn: a function that returns a list of the parts of an instance, and a context of any type.
        unflatten_fn: a function that makes an instance from parts and a context.
        flatten_with_keys_fn: like `flatten_fn`, but the list contains a pair (key, part) for each part.
        serialized_type_name: the name of the class in the files of exported programs, by default its module and its name.
        to_dumpable_context: a function that converts a context to an object that can be serialised as JSON,
            for the files of exported programs. By default, the context itself must be serialisable as JSON.
        from_dumpable_context: the inverse of `to_dumpable_context`.
        options: ignored.

    Raises:
        ValueError: the class is registered already.

    Example:
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
        >>> tree_leaves([Pair(1, 2), 3])
        [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"register_pytree_node(cls): {cls.__name__} is registered already")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)
    _IN_FILES[cls] = (
        serialized_type_name or f"{cls.__module__}.{cls.__qualname__}",
        to_dumpable_context or _unchanged,
        from_dumpable_context or _unchanged,
    )
    if flatten_with_keys_fn is not None:
        _WITH_KEYS[cls] = flatten_with_keys_fn


_register_pytree_node = register_pytree_node


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Register a dataclass as a class of containers. The parts of an instance are its fields that are not None.

    Args:
        cls: the dataclass.
        field_names: the names of the fields that are parts; by default, all constructor arguments that are
            not in `drop_field_names`.
        drop_field_names: the names of the other fields, which must have default values.
        serialized_type_name: the name of the class in the files of exported programs, by default its module and its name.

    Raises:
        TypeError: `cls` is not a dataclass.
        ValueError: a field is in neither or both of `field_names` and `drop_field_names`, a name is not a
            field, or the class is registered already.

    Example:
        >>> @dataclass
        ... class Batch:
        ...     images: Any
        ...     labels: Any = None
        >>> register_dataclass(Batch)
        >>> tree_map(lambda x: x + 1, Batch(1))
        Batch(images=2, labels=None)
    """
    if not (isinstance(cls, type) and is_dataclass(cls)):
        raise TypeError(f"register_dataclass(cls): must be a dataclass, got {cls!r}")
    init = [field.name for field in fields(cls) if field.init]
    dropped = set(drop_field_names or ())
    names = [name for name in init if name not in dropped] if field_names is None else list(field_names)
    if wrong := (set(names) | dropped) ^ set(init) or set(names) & dropped:
        raise ValueError(
            f"register_dataclass(field_names, drop_field_names): must together name each field of {cls.__name__} once; "
            f"'{min(wrong)}' is missing, repeated or not a field"
        )

    def flatten_with_keys(value: Any) -> tuple[list[tuple[Any, Any]], Context]:
        present = [name for name in names if getattr(value, name) is not None]
        absent = [name for name in names if name not in present]
        return [(GetAttrKey(name), getattr(value, name)) for name in present], [present, absent]

    def flatten(value: Any) -> tuple[list[Any], Context]:
        pairs, context = flatten_with_keys(value)
        return [part for _, part in pairs], context

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        flatten_with_keys_fn=flatten_with_keys,
        serialized_type_name=serialized_type_name,
    )


def _is_namedtuple_instance(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(type(tree), "_fields")


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind in SUPPORTED_NODES or not isinstance(tree, tuple):
        return kind
    if hasattr(kind, "_fields"):
        return _NAMEDTUPLE
    return _STRUCTSEQ if hasattr(kind, "n_sequence_fields") else kind


def _is_leaf(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


@dataclass(eq=True, frozen=True)
class TreeSpec:
    """The structure of a container: its class, a context, and the structures of its parts.

    `LeafSpec()` is the structure of a leaf. For a dict, the context consists of the keys.

    Example:
        >>> leaves, spec = tree_flatten({"a": 1, "b": (2, 3)})
        >>> spec.num_leaves
        3
        >>> spec.unflatten([x * 10 for x in leaves])
        {'a': 10, 'b': (20, 30)}
    """

    type: Any
    context: Context
    children_specs: list[TreeSpec]

    def is_leaf(self) -> bool:
        """Return whether the structure is a single leaf."""
        return self.type is None

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.is_leaf() else sum(child.num_leaves for child in self.children_specs)

    @property
    def num_children(self) -> int:
        """The number of parts."""
        return len(self.children_specs)

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """Return a container of this structure with the given leaves."""
        return tree_unflatten(leaves, self)

    def __str__(self) -> str:
        """Return the text of the container as Python prints it, with a star in place of each leaf."""
        if self.is_leaf():
            return "*"
        parts = [str(child) for child in self.children_specs]
        if self.type in _MAPPINGS:
            keys = self.context[1] if self.type is defaultdict else self.context
            return "{" + ", ".join(f"{k!r}: {part}" for k, part in zip(keys, parts, strict=True)) + "}"
        inner = ", ".join(parts)
        if self.type in (tuple, _NAMEDTUPLE):
            return f"({inner}{',' * (len(parts) == 1)})"
        return f"[{inner}]" if self.type is list else f"{self.type.__name__}({inner})"

    def __repr__(self) -> str:
        if self.is_leaf():
            return "*"
        name = "NamedTuple" if self.type is _NAMEDTUPLE else self.type.__name__
        return f"TreeSpec({name}, {self.context}, [{', '.join(map(repr, self.children_specs))}])"


class LeafSpec(TreeSpec):
    """The structure of an object that is not a container.

    Example:
        >>> tree_structure(5) == LeafSpec()
        True
    """

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()


def tree_flatten(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of nested containers from left to right, and the structure of the containers.

    Args:
        tree: nested lists, tuples, dictionaries and other registered containers.
        is_leaf: a function that returns True for objects that count as leaves.

    Example:
        >>> leaves, spec = tree_flatten({"a": [1, 2], "b": 3})
        >>> leaves
        [1, 2, 3]
    """
    leaves: list[Any] = []

    def walk(node: Any) -> TreeSpec:
        if _is_leaf(node, is_leaf):
            leaves.append(node)
            return _LEAF
        kind = _get_node_type(node)
        parts, context = SUPPORTED_NODES[kind].flatten_fn(node)
        return TreeSpec(kind, context, [walk(part) for part in parts])

    spec = walk(tree)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Build nested containers of the structure `treespec` from their leaves.

    Args:
        leaves: the leaves from left to right.
        treespec: the structure.

    Raises:
        ValueError: the length of `leaves` differs from the number of leaves of the structure.

    Example:
        >>> leaves, spec = tree_flatten({"a": [1, 2]})
        >>> tree_unflatten([10, 20], spec)
        {'a': [10, 20]}
    """
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): got {len(values)} leaves, needs {treespec.num_leaves}"
        )
    rest = iter(values)

    def build(spec: TreeSpec) -> Any:
        if spec.is_leaf():
            return next(rest)
        parts = [build(child) for child in spec.children_specs]
        return SUPPORTED_NODES[spec.type].unflatten_fn(parts, spec.context)

    return build(treespec)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return the leaves of nested containers with their paths, and the structure of the containers.

    Args:
        tree, is_leaf: see :func:`tree_flatten`.

    Example:
        >>> leaves, spec = tree_flatten_with_path({"a": [5]})
        >>> [(keystr(path), leaf) for path, leaf in leaves]
        [("['a'][0]", 5)]
    """
    found: list[tuple[KeyPath, Any]] = []

    def walk(node: Any, path: KeyPath) -> TreeSpec:
        if _is_leaf(node, is_leaf):
            found.append((path, node))
            return _LEAF
        kind = _get_node_type(node)
        parts, context = SUPPORTED_NODES[kind].flatten_fn(node)
        if kind in _WITH_KEYS:
            keys = [key for key, _ in _WITH_KEYS[kind](node)[0]]
        elif isinstance(node, dict):
            keys = [MappingKey(key) for key in node]
        elif kind is _NAMEDTUPLE:
            keys = [GetAttrKey(name) for name in type(node)._fields]
        else:
            keys = [SequenceKey(i) for i in range(len(parts))]
        children = [walk(part, (*path, key)) for part, key in zip(parts, keys, strict=True)]
        return TreeSpec(kind, context, children)

    spec = walk(tree, ())
    return found, spec


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """Return nested containers in which `func(path, leaf, ...)` replaces each leaf.

    Args:
        func: a function of the path, the leaf, and the leaves of `rests` at the same path.
        tree: the containers.
        rests: further containers of the same structure.
        is_leaf: see :func:`tree_flatten`.

    Example:
        >>> tree_map_with_path(lambda path, leaf: keystr(path), {"a": [5]})
        {'a': ["['a'][0]"]}
    """
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [_up_to(spec, rest) for rest in rests]
    return tree_unflatten([func(*one, *row) for one, *row in zip(found, *others, strict=True)], spec)


def keystr(kp: KeyPath) -> str:
    """Return a path as the text of a Python expression.

    Example:
        >>> keystr((MappingKey("layers"), SequenceKey(0)))
        "['layers'][0]"
    """
    return "".join(map(str, kp))


def tree_iter(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> Iterator[Any]:
    """Yield the leaves of nested containers from left to right.

    Args:
        tree, is_leaf: see :func:`tree_flatten`.

    Example:
        >>> list(tree_iter([1, (2, 3)]))
        [1, 2, 3]
    """
    yield from tree_leaves(tree, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any]:
    """Return the leaves of nested containers from left to right.

    Args:
        tree, is_leaf: see :func:`tree_flatten`.

    Example:
        >>> tree_leaves([1, (2, 3)])
        [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """Return the leaves of all positional arguments, followed by the leaves of the keyword arguments.

    Example:
        >>> from rushlight.utils import _pytree
        >>> _pytree.arg_tree_leaves([1, 2], 3, last={"a": 4})
        [1, 2, 3, 4]
    """
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_leaves(tree)]


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """Return the structure of nested containers.

    Args:
        tree, is_leaf: see :func:`tree_flatten`.

    Example:
        >>> tree_structure([1, 2]) == tree_structure([3, 4])
        True
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """Return nested containers in which `func(leaf, ...)` replaces each leaf.

    Args:
        func: a function of the leaf, and of the leaves of `rests` at the same position.
        tree: the containers.
        rests: further containers of the same structure.
        is_leaf: see :func:`tree_flatten`.

    Example:
        >>> tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
        {'a': 11, 'b': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_up_to(spec, rest) for rest in rests]
    return tree_unflatten([func(*row) for row in zip(leaves, *others, strict=True)], spec)


def _up_to(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """Return the parts of `tree` at the positions of the leaves of `spec`; a part may be a container itself."""
    if spec.is_leaf():
        return [tree]
    kind = _get_node_type(tree)
    parts = SUPPORTED_NODES[kind].flatten_fn(tree)[0] if kind in SUPPORTED_NODES else []
    if kind is not spec.type or len(parts) != spec.num_children:
        raise ValueError(f"tree_map(tree, *rests): expected {spec.type.__name__}, got {type(tree).__name__}")
    if isinstance(tree, dict):  # entries with equal keys correspond
        keys = spec.context[1] if kind is defaultdict else spec.context
        parts = [tree[key] for key in keys]
    return [
        leaf for child, part in zip(spec.children_specs, parts, strict=True) for leaf in _up_to(child, part)
    ]


def broadcast_prefix(prefix: PyTree, spec: TreeSpec) -> list[Any] | None:
    """Expand `prefix`, a container with the upper levels of the structure `spec`, to a list with one value for each leaf.

    Each leaf of `prefix` becomes the value of all leaves of the structure at or below the same position. A list is accepted
    in place of a tuple.

    Args:
        prefix: the container, or one value for all leaves.
        spec: the structure; see :func:`tree_flatten`.

    Returns:
        The list of values, or None if the structures do not agree.

    Example:
        >>> spec = tree_flatten(((1, 2), 3))[1]
        >>> broadcast_prefix((0, 1), spec)
        [0, 0, 1]
        >>> broadcast_prefix((0, 1, 2), spec) is None
        True
    """
    kind = _get_node_type(prefix)
    if kind not in SUPPORTED_NODES:
        return [prefix] * spec.num_leaves
    parts = SUPPORTED_NODES[kind].flatten_fn(prefix)[0]
    if spec.is_leaf() or len(parts) != spec.num_children:
        return None
    if isinstance(prefix, dict):  # entries with equal keys correspond
        keys = spec.context[1] if spec.type is defaultdict else spec.context
        if spec.type not in _MAPPINGS or set(keys) != set(prefix):
            return None
        parts = [prefix[key] for key in keys]
    elif kind is not spec.type and not {kind, spec.type} <= _SEQUENCES:
        return None
    values: list[Any] = []
    for part, child in zip(parts, spec.children_specs, strict=True):
        below = broadcast_prefix(part, child)
        if below is None:
            return None
        values += below
    return values


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """Call a function for each leaf, as :func:`tree_map` does, but ignore the results and return `tree` itself.

    Example:
        >>> tree_map_(print, [1, 2])
        1
        2
        [1, 2]
    """
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(kind: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator that applies a function only to leaves that match `kind`, and returns other leaves unchanged.

    Args:
        kind: a class, a tuple of classes, or a predicate.

    Example:
        >>> @map_only(int)
        ... def double(x):
        ...     return 2 * x
        >>> double(3), double("text")
        (6, 'text')
    """
    wanted = (lambda x: isinstance(x, kind)) if isinstance(kind, (type, tuple)) else kind
    return lambda func: lambda x: func(x) if wanted(x) else x


def tree_map_only(
    kind: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """Return nested containers in which `func(leaf)` replaces each leaf that matches `kind`.

    Args:
        kind: a class, a tuple of classes, or a predicate.
        func: the function.
        tree, is_leaf: see :func:`tree_flatten`.

    Example:
        >>> tree_map_only(int, lambda x: 2 * x, [1, "text"])
        [2, 'text']
    """
    return tree_map(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    kind: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """Call a function for each leaf that matches `kind`, but ignore the results and return `tree` itself.

    Example:
        >>> tree_map_only_(int, print, [1, "text"])
        1
        [1, 'text']
    """
    return tree_map_(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree) -> bool:
    """Return whether a predicate is true for all leaves.

    Example:
        >>> tree_all(lambda x: x > 0, [1, (2, 3)])
        True
    """
    return all(map(pred, tree_leaves(tree)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree) -> bool:
    """Return whether a predicate is true for at least one leaf.

    Example:
        >>> tree_any(lambda x: x > 2, [1, (2, 3)])
        True
    """
    return any(map(pred, tree_leaves(tree)))


def tree_all_only(kind: Any, /, pred: Callable[[Any], bool], tree: PyTree) -> bool:
    """Return whether `pred` is true for all leaves that are instances of `kind`. Other leaves are ignored.

    Example:
        >>> tree_all_only(int, lambda x: x > 0, [1, "text"])
        True
    """
    return all(pred(leaf) for leaf in tree_leaves(tree) if isinstance(leaf, kind))


def tree_any_only(kind: Any, /, pred: Callable[[Any], bool], tree: PyTree) -> bool:
    """Return whether `pred` is true for at least one leaf that is an instance of `kind`.

    Example:
        >>> tree_any_only(int, lambda x: x > 2, [1, "text"])
        False
    """
    return any(pred(leaf) for leaf in tree_leaves(tree) if isinstance(leaf, kind))
