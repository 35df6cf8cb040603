"""Flatten containers whose structure must be the same as in a trace.

A GraphModule whose arguments are containers calls these functions.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rushlight_core import pytree
from rushlight_core.pytree import TreeSpec

__all__ = ["tree_flatten_spec"]

_MAPPINGS = tuple(
    kind for kind in pytree.SUPPORTED_NODES if isinstance(kind, type) and issubclass(kind, dict)
)


def tree_flatten_spec(tree: Any, spec: TreeSpec, exact_structural_match: bool = True) -> list[Any]:
    """Return the leaves of `tree` in the order of `spec`. The keys of dicts may have another order.

    Args:
        tree: nested containers.
        spec: the structure that the containers must have.
        exact_structural_match: must be True, so that keys and elements that `spec` does not contain raise an
            error.

    Raises:
        NotImplementedError: `exact_structural_match` is False.
        ValueError: the structure of `tree` differs from `spec`.

    Example:
        >>> spec = pytree.tree_structure({"a": 0, "b": (0, 0)})
        >>> tree_flatten_spec({"b": (2, 3), "a": 1}, spec)
        [1, 2, 3]
    """
    if not exact_structural_match:
        raise NotImplementedError("fx.tree_flatten_spec(exact_structural_match): must be True")
    leaves: list[Any] = []
    _flatten(tree, spec, "", leaves)
    return leaves


def flatten_arguments(names: list[str], values: tuple[Any, ...], spec: TreeSpec) -> list[Any]:
    """Return the leaves of the arguments of a function. An error names the argument whose structure differs."""
    leaves: list[Any] = []
    for name, value, part in zip(names, values, spec.children_specs, strict=True):
        _flatten(value, part, name, leaves)
    return leaves


def _flatten(tree: Any, spec: TreeSpec, path: str, leaves: list[Any]) -> None:
    if spec.is_leaf():
        leaves.append(tree)
        return
    kind = pytree._get_node_type(tree)
    if kind is not spec.type:
        raise ValueError(
            f"fx: {path or 'the argument'} must be a {_name(spec)} as in the trace, got {type(tree).__name__}"
        )
    parts, context = pytree.SUPPORTED_NODES[kind].flatten_fn(tree)
    if kind in _MAPPINGS:
        keys = spec.context[1] if kind is defaultdict else spec.context
        if set(keys) != set(tree):
            raise ValueError(
                f"fx: {path or 'the argument'} must have the keys {list(keys)} as in the trace, got {list(tree)}"
            )
        for key, part in zip(keys, spec.children_specs, strict=True):
            _flatten(tree[key], part, f"{path}[{key!r}]", leaves)
        return
    if len(parts) != spec.num_children or context != spec.context:
        raise ValueError(
            f"fx: {path or 'the argument'} must have the structure {spec} as in the trace, "
            f"got {pytree.tree_structure(tree)}"
        )
    for number, (value, part) in enumerate(zip(parts, spec.children_specs, strict=True)):
        _flatten(value, part, f"{path}[{number}]", leaves)


def _name(spec: TreeSpec) -> str:
    named = {pytree._NAMEDTUPLE: "named tuple", pytree._STRUCTSEQ: "named tuple"}
    return named.get(spec.type) or str(spec.type.__name__)
