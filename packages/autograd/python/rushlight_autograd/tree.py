"""Functions for nested containers of tensors, which :mod:`rushlight_core.pytree` calls trees."""

from __future__ import annotations

from typing import Any

from rushlight_core.pytree import (
    SUPPORTED_NODES,
    LeafSpec,
    TreeSpec,
    broadcast_prefix,
    tree_flatten,
    tree_map,
)

__all__ = ["TreeSpec", "broadcast_prefix", "flatten", "tree_map"]

_LEAF = LeafSpec()


def flatten(value: Any) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of nested containers from left to right, and the structure of the containers.

    Args:
        value: lists, tuples and dictionaries of any objects.

    Example:
        >>> leaves, tree = flatten([1, (2, 3)])
        >>> leaves
        [1, 2, 3]
    """
    if type(value) is tuple:  # the usual case: plain arguments
        for one in value:
            if type(one) in SUPPORTED_NODES or isinstance(one, tuple):
                break
        else:
            return list(value), TreeSpec(tuple, None, [_LEAF] * len(value))
    return tree_flatten(value)
