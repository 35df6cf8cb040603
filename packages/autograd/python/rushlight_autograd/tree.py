"""Nested containers of tensors: lists, tuples, named tuples and dictionaries, as functions take and return them."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

__all__ = ["Tree", "broadcast_prefix", "flatten", "tree_map"]


class Tree:
    """The shape of a nested container. `Tree(None, ())` is a leaf."""

    __slots__ = ("children", "keys", "kind")

    def __init__(self, kind: Any, children: tuple[Tree, ...], keys: tuple[Any, ...] = ()) -> None:
        self.kind, self.children, self.keys = kind, children, keys

    @property
    def is_leaf(self) -> bool:
        return self.kind is None

    def count(self) -> int:
        return 1 if self.is_leaf else sum(child.count() for child in self.children)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tree)
            and self.kind is other.kind
            and self.keys == other.keys
            and self.children == other.children
        )

    __hash__ = None  # type: ignore[assignment]

    def unflatten(self, leaves: Any) -> Any:
        """The container with these leaves."""
        return self._build(iter(leaves))

    def _build(self, leaves: Any) -> Any:
        if self.kind is None:
            return next(leaves)
        made = [child._build(leaves) for child in self.children]
        if issubclass(self.kind, defaultdict):
            return defaultdict(None, zip(self.keys, made, strict=True))
        if issubclass(self.kind, dict):
            return self.kind(zip(self.keys, made, strict=True))
        return self.kind(*made) if hasattr(self.kind, "_fields") else self.kind(made)

    def __repr__(self) -> str:
        if self.is_leaf:
            return "*"
        if self.keys:
            return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(self.keys, self.children, strict=True)) + "}"
        inner = ", ".join(map(repr, self.children))
        return f"[{inner}]" if self.kind is list else f"({inner}{',' * (len(self.children) == 1)})"


_LEAF = Tree(None, ())
_DICTS = (dict, OrderedDict, defaultdict)


def _entries(value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """Children and keys of a container; None for anything else."""
    kind = type(value)
    if kind in _DICTS:
        return tuple(value.values()), tuple(value)
    if kind is list or isinstance(value, tuple):
        return tuple(value), ()
    return None


def flatten(value: Any) -> tuple[list[Any], Tree]:
    """The leaves from left to right, and the container's shape."""
    if type(value) is tuple:  # the usual case: plain arguments
        for one in value:
            if _entries(one) is not None:
                break
        else:
            return list(value), Tree(tuple, (_LEAF,) * len(value))
    leaves: list[Any] = []

    def walk(x: Any) -> Tree:
        entries = _entries(x)
        if entries is None:
            leaves.append(x)
            return _LEAF
        return Tree(type(x), tuple(map(walk, entries[0])), entries[1])

    tree = walk(value)
    return leaves, tree


def tree_map(function: Callable[[Any], Any], value: Any) -> Any:
    """The container with function(leaf) in the place of each leaf."""
    leaves, tree = flatten(value)
    return tree.unflatten([function(leaf) for leaf in leaves])


def broadcast_prefix(prefix: Any, tree: Tree) -> list[Any] | None:
    """A value for each leaf of `tree` from a container that ends earlier: there its leaf counts for all below.
    None where the shapes do not agree."""
    if _entries(prefix) is None:
        return [prefix] * tree.count()
    entries, keys = _entries(prefix) or ((), ())
    # A list may stand for a tuple, as users write either.
    if tree.is_leaf or len(entries) != len(tree.children) or bool(keys) != bool(tree.keys):
        return None
    if keys:
        if set(keys) != set(tree.keys):
            return None
        entries = tuple(prefix[k] for k in tree.keys)
    result: list[Any] = []
    for one, child in zip(entries, tree.children, strict=True):
        part = broadcast_prefix(one, child)
        if part is None:
            return None
        result += part
    return result
