"""Immutable lists and dicts for the arguments of nodes.

A node records which nodes it uses, and an in-place change of its arguments would bypass this record.
"""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight_core.pytree import register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        f"'{type(self).__name__}' object does not support mutation\n"
        "hint: assign to node.args or node.kwargs, or call node.update_arg()"
    )


class immutable_list(list[Any]):  # noqa: N801  PyTorch's name
    """A list that raises NotImplementedError when it is changed.

    Example:
        >>> immutable_list([1, 2]).append(3)
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """

    __delitem__: Any = _refuse
    __iadd__: Any = _refuse
    __imul__: Any = _refuse
    __setitem__: Any = _refuse
    append: Any = _refuse
    clear: Any = _refuse
    extend: Any = _refuse
    insert: Any = _refuse
    pop: Any = _refuse
    remove: Any = _refuse
    reverse: Any = _refuse
    sort: Any = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return (immutable_list, (list(self),))


class immutable_dict(dict[Any, Any]):  # noqa: N801
    """A dict that raises NotImplementedError when it is changed.

    Example:
        >>> immutable_dict(a=1)["b"] = 2
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """

    __delitem__: Any = _refuse
    __ior__: Any = _refuse
    __setitem__: Any = _refuse
    clear: Any = _refuse
    pop: Any = _refuse
    popitem: Any = _refuse
    setdefault: Any = _refuse
    update: Any = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return (immutable_dict, (dict(self),))


register_pytree_node(
    immutable_list,
    lambda items: (list(items), None),
    lambda parts, _: immutable_list(parts),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
)
register_pytree_node(
    immutable_dict,
    lambda items: (list(items.values()), list(items)),
    lambda parts, keys: immutable_dict(zip(keys, parts, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
)
